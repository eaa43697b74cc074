package main

import "github.com/spf13/cobra"

// commandGroups are all commands.
func commandGroups(a *app) []commandGroup {
	return []commandGroup{
		{"run", "Servers and workers:", []*cobra.Command{serverCommand(a), devCommand(a), workerCommand(a)}},
		{"workflow", "Workflows:", []*cobra.Command{
			startCommand(a), signalCommand(a), resultCommand(a), cancelCommand(a), terminateCommand(a), pauseCommand(a), resumeCommand(a),
			holdCommand(a), releaseCommand(a), replayCommand(a),
		}},
		{"look", "What happens:", []*cobra.Command{
			listCommand(a), countCommand(a), describeCommand(a), historyCommand(a), whyCommand(a), operationsCommand(a), deadCommand(a),
		}},
		{"define", "Types, flows and times:", []*cobra.Command{typeCommand(a), flowCommand(a), scheduleCommand(a), alwaysOnCommand(a), onceCommand(a)}},
		{"operate", "Operation:", []*cobra.Command{
			nodeCommand(a), claimsCommand(a), drainCommand(a), recycleCommand(a), namespaceCommand(a), retentionCommand(a), tasklistCommand(a),
			lockCommand(a), auditCommand(a), verifyCommand(a), doctorCommand(a), authCommand(a),
		}},
		{groupOther, "Other:", []*cobra.Command{versionCommand(a)}},
	}
}

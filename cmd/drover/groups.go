package main

import (
	"github.com/spf13/cobra"

	"github.com/droverhq/drover/cmd/drover/check"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/flows"
	"github.com/droverhq/drover/cmd/drover/modules"
	"github.com/droverhq/drover/cmd/drover/namespaces"
	"github.com/droverhq/drover/cmd/drover/nodes"
	"github.com/droverhq/drover/cmd/drover/schedules"
	"github.com/droverhq/drover/cmd/drover/serve"
	"github.com/droverhq/drover/cmd/drover/workflows"
)

// commandGroups are all commands.
func commandGroups(a *cli.App) []cli.CommandGroup {
	return []cli.CommandGroup{
		{ID: "run", Title: "Servers and workers:", Commands: []*cobra.Command{
			serve.ServerCommand(a), serve.DevCommand(a), serve.WorkerCommand(a),
			modules.InitCommand(a),
		}},
		{ID: "workflow", Title: "Workflows:", Commands: []*cobra.Command{
			workflows.StartCommand(a), workflows.SignalCommand(a), workflows.ResultCommand(a),
			workflows.CancelCommand(a), workflows.TerminateCommand(a), workflows.PauseCommand(a),
			workflows.ResumeCommand(a), workflows.HoldCommand(a), workflows.ReleaseCommand(a),
			workflows.ReplayCommand(a), workflows.DeleteCommand(a),
			workflows.BulkCommand(a),
		}},
		{ID: "look", Title: "What happens:", Commands: []*cobra.Command{
			workflows.ListCommand(a), workflows.CountCommand(a), workflows.DescribeCommand(a),
			workflows.HistoryCommand(a), workflows.WhyCommand(a), workflows.OperationsCommand(a),
			workflows.DeadCommand(a),
		}},
		{ID: "define", Title: "Types, flows and times:", Commands: []*cobra.Command{
			namespaces.TypeCommand(a), flows.FlowCommand(a), schedules.ScheduleCommand(a),
			schedules.AlwaysOnCommand(a), schedules.OnceCommand(a),
		}},
		{ID: "operate", Title: "Operation:", Commands: []*cobra.Command{
			nodes.NodeCommand(a), nodes.ClaimsCommand(a), nodes.DrainCommand(a),
			nodes.RecycleCommand(a), namespaces.NamespaceCommand(a),
			namespaces.RetentionCommand(a), namespaces.TasklistCommand(a),
			namespaces.LockCommand(a), check.AuditCommand(a), check.VerifyCommand(a),
			check.DoctorCommand(a), check.AuthCommand(a),
		}},
		{ID: cli.GroupOther, Title: "Other:", Commands: []*cobra.Command{cli.VersionCommand(a)}},
	}
}

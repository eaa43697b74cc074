package checker_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/checker"
)

const (
	leavesSignals = `
		WorkflowStarted run=r1
		DeciderScheduled
		---
		DeciderStarted
		---
		Signal one requestId=q1 input=1
		DeciderScheduled
		---
		Signal two input=2
		Signal far externalWorkflowExecution={"workflowId":"x","run":"x1"} externalScheduledEventId=7
		---
		DeciderCompleted
		WorkflowContinuedAsNew newExecutionRun=r2 unreadSignals=3`
	takesSignals = `
		WorkflowStarted run=r2 continuedExecutionRun=r1 firstExecutionRun=r1 signalIds=["q1","x1.7"] unreadSignals=3
		DeciderScheduled
		Signal one requestId=q1 input=1 originRun=r1 originEventId=4
		Signal two input=2 originRun=r1 originEventId=6
		Signal far externalWorkflowExecution={"workflowId":"x","run":"x1"} externalScheduledEventId=7 originRun=r1 originEventId=7`
	copyOfTwo = "Signal two input=2 originRun=r1 originEventId=6"
)

// R3, P-4. A run that continues another may begin with copies of the signals that nobody had read: all of them, as they were, and before
// anything else. The history may end between two.
func TestCopiedSignals(t *testing.T) {
	change := func(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }
	for name, tt := range map[string]struct{ rule, first, next string }{
		"as it should be":            {"", leavesSignals, takesSignals + "\n---\nSignal three\nDeciderStarted\nDeciderCompleted\nWorkflowFailed deciderCompletedEventId=0"},
		"in several records":         {"", leavesSignals, change(takesSignals, "\t\tSignal", "---\nSignal")},
		"some are still to come":     {"", leavesSignals, takesSignals[:strings.Index(takesSignals, copyOfTwo)]},
		"an id had no room":          {checker.RuleInherit, leavesSignals, change(takesSignals, `["q1","x1.7"]`, `[]`)},
		"another input":              {checker.RuleContinuation, leavesSignals, change(takesSignals, "input=2", "input=3")},
		"another name":               {checker.RuleContinuation, leavesSignals, change(takesSignals, "Signal two", "Signal too")},
		"another event":              {checker.RuleContinuation, leavesSignals, change(takesSignals, "EventId=6", "EventId=5")},
		"without its request id":     {checker.RuleContinuation, leavesSignals, change(takesSignals, "one requestId=q1", "one")},
		"of another run":             {checker.RuleContinuation, leavesSignals, change(takesSignals, "input=2 originRun=r1", "input=2 originRun=r0")},
		"one is missing":             {checker.RuleContinuation, leavesSignals, change(takesSignals, copyOfTwo, "") + "\nDeciderStarted"},
		"one is twice":               {checker.RuleContinuation, leavesSignals, change(takesSignals, copyOfTwo, copyOfTwo+"\n"+copyOfTwo)},
		"another order":              {checker.RuleContinuation, leavesSignals, change(takesSignals, copyOfTwo, "", "\t\tSignal one", copyOfTwo+"\n\t\tSignal one")},
		"something comes before":     {checker.RuleContinuation, leavesSignals, change(takesSignals, copyOfTwo, "Signal between\n"+copyOfTwo)},
		"a decider comes before":     {checker.RuleContinuation, leavesSignals, change(takesSignals, copyOfTwo, "DeciderStarted\n"+copyOfTwo)},
		"the next run says less":     {checker.RuleContinuation, leavesSignals, change(takesSignals, "unreadSignals=3", "unreadSignals=2")},
		"the next run says nothing":  {checker.RuleContinuation, leavesSignals, change(takesSignals, " unreadSignals=3", "")},
		"the first one says less":    {checker.RuleUnhandled, change(leavesSignals, "unreadSignals=3", "unreadSignals=2"), change(takesSignals, "unreadSignals=3", "unreadSignals=2")},
		"the first one says nothing": {checker.RuleUnhandled, change(leavesSignals, "unreadSignals=3", ""), change(takesSignals, "unreadSignals=3", "")},
		"not only signals":           {checker.RuleUnhandled, change(leavesSignals, "---\n\t\tDeciderCompleted", "WorkflowCancelRequested\nDeciderCompleted"), takesSignals},
		"it completes over them":     {checker.RuleUnhandled, change(leavesSignals, "WorkflowContinuedAsNew newExecutionRun=r2 unreadSignals=3", "WorkflowSuccess"), secondRun},
		"it continues none":          {checker.RuleContinuation, firstRun, secondRunCopies},
	} {
		t.Run(name, func(t *testing.T) {
			all := runs(t, tt.first, tt.next)
			found := checkRuns(t, all)
			if tt.rule == "" && len(found) != 0 {
				t.Fatal(found)
			}
			rules := map[string]bool{}
			for _, v := range found {
				rules[v.Rule] = true
			}
			if tt.rule != "" && !rules[tt.rule] {
				t.Fatalf("got %v, want the rule %s\n%s", found, tt.rule, showRecords(all))
			}
		})
	}
	if found := checkRuns(t, records(t, "r2", takesSignals)); len(found) != 0 {
		t.Errorf("the run before is removed: %v", found)
	}
}

const secondRunCopies = `
	WorkflowStarted run=r2 unreadSignals=1
	DeciderScheduled
	Signal s originRun=r1 originEventId=3`

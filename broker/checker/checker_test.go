package checker_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/schemas"
)

func TestEventWithoutAttributes(t *testing.T) {
	events := append(script(t, decided), schemas.Event{ID: 5, Time: 1 << 62})
	checkRules(t, checker.CheckEvents("w", "r", events), checker.RuleEvent, "", show(events))
}

// Names that are left out are taken from the first event, so that a file of events can be checked.
func TestNamesOfTheFirstEvent(t *testing.T) {
	found := checker.CheckEvents("", "", script(t, decided+"WorkflowSuccess\nSignal s"))
	if len(found) != 1 || found[0].WorkflowID != "w" || found[0].Run != "r" {
		t.Fatalf("got %v, want one violation of workflow w run r", found)
	}
}

// Every rule has a history, a record or a pair of runs that breaks it.
func TestEveryRuleCanBeBroken(t *testing.T) {
	var broken []string
	for _, tt := range slices.Concat(illegal, illegalTasks) {
		broken = append(broken, tt.rule)
	}
	for _, tt := range illegalRecords {
		broken = append(broken, tt.rule)
	}
	for _, tt := range illegalWorkflows {
		broken = append(broken, tt.rule)
	}
	for _, tt := range illegalNamespaces {
		broken = append(broken, tt.rule)
	}
	slices.Sort(broken)
	if diff := cmp.Diff(allRules(), slices.Compact(broken)); diff != "" {
		t.Fatalf("(-rules +broken by a test):\n%s", diff)
	}
}

// allRules returns the names of all rules, sorted.
func allRules() []string {
	all := []string{
		checker.RuleIDs, checker.RuleFirst, checker.RuleClosed, checker.RuleTime, checker.RuleEvent,
		checker.RuleOnce, checker.RuleDeciderScheduled, checker.RuleDeciderStarted,
		checker.RuleDeciderClosed, checker.RuleDecided, checker.RuleRefusal, checker.RuleUnhandled,
		checker.RuleWake, checker.RulePaused, checker.RuleActivity, checker.RuleActivityID,
		checker.RuleAttempt, checker.RuleTimer, checker.RuleTimerID, checker.RuleEarly,
		checker.RuleChild, checker.RuleExternal, checker.RuleLock, checker.RuleState,
		checker.RuleRecord, checker.RuleChain, checker.RuleFence, checker.RulePosition,
		checker.RuleSnapshot, checker.RuleServerTime, checker.RuleOneRun, checker.RuleInherit,
		checker.RuleContinuation, checker.RuleReplay, checker.RuleParent, checker.RuleChildPolicy,
		checker.RuleDelivery, checker.RuleUnfinished,
	}
	slices.Sort(all)
	return all
}

func ExampleCheckEvents() {
	at := schemas.Timestamp(1714979289000000000)
	events := []schemas.Event{
		{ID: 1, Time: at, Attributes: &schemas.WorkflowStarted{WorkflowID: "order-17", Run: "r1"}},
		{ID: 2, Time: at, Attributes: &schemas.DeciderScheduled{}},
		{ID: 3, Time: at, Attributes: &schemas.DeciderStarted{ScheduledEventID: 2}},
		{ID: 5, Time: at, Attributes: &schemas.WorkflowSuccess{DeciderCompletedEventID: 4}},
	}
	for _, v := range checker.CheckEvents("order-17", "r1", events) {
		fmt.Println(v)
	}
	// Output:
	// ids: workflow "order-17" run r1 event 5: WorkflowSuccess has id 5 after id 3; want 4
	// decided: workflow "order-17" run r1 event 5: WorkflowSuccess says that it was decided at event 4, but does not stand directly after it
}

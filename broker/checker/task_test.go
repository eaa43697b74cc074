package checker_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/schemas"
)

// beforeTask is a history whose last decider is asked: it completed one decision, then another timed out.
const beforeTask = decided + `
	Signal a
	DeciderScheduled
	DeciderStarted
	+10s DeciderTimedOut
	DeciderScheduled
	DeciderStarted`

// illegalTaskMessages break RuleTask.
var illegalTaskMessages = map[string]func(*schemas.DecisionTask){
	"another run":                 func(t *schemas.DecisionTask) { t.Run = "other" },
	"another workflow":            func(t *schemas.DecisionTask) { t.WorkflowID = "other" },
	"another start":               func(t *schemas.DecisionTask) { t.StartedID = 9; t.Events = t.Events[:6] },
	"behind the one that failed":  func(t *schemas.DecisionTask) { t.PreviousStartedID = 7; t.Events = t.Events[4:] },
	"from the beginning":          func(t *schemas.DecisionTask) { t.PreviousStartedID = 0 },
	"an event is missing":         func(t *schemas.DecisionTask) { t.Events = slices.Delete(slices.Clone(t.Events), 2, 3) },
	"the first event is missing":  func(t *schemas.DecisionTask) { t.Events = t.Events[1:] },
	"the last event is missing":   func(t *schemas.DecisionTask) { t.Events = t.Events[:len(t.Events)-1] },
	"no events":                   func(t *schemas.DecisionTask) { t.Events = nil },
	"an event behind its start":   func(t *schemas.DecisionTask) { t.Events = append(slices.Clone(t.Events), schemas.Event{ID: 11}) },
	"another base":                func(t *schemas.DecisionTask) { t.Base = &schemas.DecisionBase{CompletedID: 3, Digest: ""} },
	"another digest of that base": func(t *schemas.DecisionTask) { t.Base = &schemas.DecisionBase{CompletedID: 4, Digest: "x"} },
}

// The window begins behind the start of the last decider that completed, not of the last that was asked.
func TestTask(t *testing.T) {
	events := script(t, beforeTask)
	h := checker.New("w", "r")
	for _, e := range events {
		if found := h.Event(e); len(found) != 0 {
			t.Fatal(found)
		}
	}
	last := events[len(events)-1].ID
	good := schemas.DecisionTask{
		WorkflowID: "w", Run: "r", PreviousStartedID: 3, StartedID: last, Events: events[3:], Base: &schemas.DecisionBase{CompletedID: 4},
	}
	paged := good
	paged.Events, paged.More, paged.Base = events[3:5], true, nil
	for _, task := range []*schemas.DecisionTask{&good, &paged} {
		if found := h.Task(task); len(found) != 0 {
			t.Fatalf("got %v\n%s", found, show(events))
		}
	}
	for name, change := range illegalTaskMessages {
		t.Run(name, func(t *testing.T) {
			bad := good
			change(&bad)
			checkRules(t, h.Task(&bad), checker.RuleTask, "", show(events))
		})
	}
	if found := h.Event(schemas.Event{ID: last + 1, Time: events[last-1].Time, Attributes: &schemas.DeciderCompleted{ScheduledEventID: last - 1, StartedEventID: last}}); len(found) != 0 {
		t.Fatal(found)
	}
	checkRules(t, h.Task(&good), checker.RuleTask, "", "the task of a decider that is done")
}

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

// Every rule has a history, a record, a pair of runs or a task that breaks it.
func TestEveryRuleCanBeBroken(t *testing.T) {
	broken := []string{checker.RuleTask}
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
	if diff := cmp.Diff(checker.Rules(), slices.Compact(broken)); diff != "" {
		t.Fatalf("(-rules +broken by a test):\n%s", diff)
	}
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
	// ids: workflow "order-17" run r1 event 5: WorkflowSuccess has id 5 behind id 3; want 4
	// decided: workflow "order-17" run r1 event 5: WorkflowSuccess says that it was decided at event 4, but does not stand directly behind it
}

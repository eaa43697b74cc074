package match_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/workflow/internal/match"
	"github.com/droverhq/drover/schemas"
)

// block numbers events from 11 on.
func block(all ...schemas.Attributes) (events []schemas.Event) {
	for n, a := range all {
		events = append(events, schemas.Event{ID: int64(11 + n), Attributes: a})
	}
	return events
}

// Code and history agree if they have the same things, in any order, however the broker has taken
// them.
// sdk-go#990.
func TestAgreement(t *testing.T) {
	ship := match.Ask{Decision: decider.Schedule("ship#1", "ship", nil)}
	nap := match.Ask{Decision: decider.Timer("timer#1", 5)}
	for _, tc := range []struct {
		name   string
		asks   []match.Ask
		block  []schemas.Event
		agreed bool
	}{
		{"nothing", nil, nil, true},
		{"another order", []match.Ask{ship, nap}, block(
			&schemas.TimerScheduled{TimerID: "timer#1"}, &schemas.ActivityScheduled{ActivityID: "ship#1"},
		), true},
		{"other input and duration", []match.Ask{ship, nap}, block(
			&schemas.ActivityScheduled{ActivityID: "ship#1", Input: schemas.Payload("1")},
			&schemas.TimerScheduled{TimerID: "timer#1", StartToFireTimeout: 7},
		), true},
		{"a refusal", []match.Ask{ship}, block(&schemas.ActivityScheduleFailed{ActivityID: "ship#1"}), true},
		{
			"what ended at once in the midst",
			[]match.Ask{nap},
			block(&schemas.ActivityCanceled{ScheduledEventID: 3}, &schemas.TimerScheduled{TimerID: "timer#1"}),
			true,
		},
		{"an old change marker", nil, block(&schemas.Marker{MarkerName: match.ChangePrefix + "7"}), true},
		{
			"a new change marker",
			[]match.Ask{{Decision: decider.Marker(match.ChangePrefix+"7", nil)}},
			nil, false,
		},
		{"another marker", nil, block(&schemas.Marker{MarkerName: "rate#1"}), false},
		{"another name", []match.Ask{ship}, block(&schemas.ActivityScheduled{ActivityID: "ship#2"}), false},
		{"another kind", []match.Ask{ship}, block(&schemas.TimerScheduled{TimerID: "ship#1"}), false},
		{"too much", []match.Ask{ship, nap}, block(&schemas.ActivityScheduled{ActivityID: "ship#1"}), false},
		{"too little", nil, block(&schemas.ActivityScheduled{ActivityID: "ship#1"}), false},
		{
			"another end",
			[]match.Ask{{Decision: decider.Complete("x")}},
			block(&schemas.WorkflowFailed{Reason: "x"}), false,
		},
		{
			"the same end",
			[]match.Ask{{Decision: decider.Complete("x")}},
			block(&schemas.WorkflowSuccess{Result: schemas.Payload("y")}), true,
		},
		{
			"a signal to the same workflow by another name",
			[]match.Ask{{Decision: decider.SignalExternal("w", "s", nil, decider.Control("send#2"))}},
			block(&schemas.SignalExternalScheduled{WorkflowID: "w", Control: schemas.Payload(`"send#1"`)}),
			false,
		},
	} {
		if err := match.Compare(tc.asks, tc.block); (err == nil) != tc.agreed {
			t.Errorf("%s: %v, want agreement: %v", tc.name, err, tc.agreed)
		}
	}
}

// Every decision that code can ask for has a name, and the event that answers it has the same.
func TestEveryDecisionHasItsEvent(t *testing.T) {
	note := decider.Control("n")
	control := schemas.Payload(`"n"`)
	for _, tc := range []struct {
		decision schemas.Decision
		answers  []schemas.Attributes
	}{
		{decider.Schedule("a", "t", nil), []schemas.Attributes{
			&schemas.ActivityScheduled{ActivityID: "a"}, &schemas.ActivityScheduleFailed{ActivityID: "a"},
		}},
		{decider.CancelActivity("a"), []schemas.Attributes{
			&schemas.ActivityCancelRequested{ActivityID: "a"}, &schemas.ActivityCancelFailed{ActivityID: "a"},
		}},
		{decider.Timer("a", 1), []schemas.Attributes{
			&schemas.TimerScheduled{TimerID: "a"}, &schemas.TimerScheduleFailed{TimerID: "a"},
		}},
		{decider.CancelTimer("a"), []schemas.Attributes{
			&schemas.TimerCanceled{TimerID: "a"}, &schemas.TimerCancelFailed{TimerID: "a"},
		}},
		{decider.Marker("a", nil), []schemas.Attributes{
			&schemas.Marker{MarkerName: "a"}, &schemas.MarkerFailed{MarkerName: "a"},
		}},
		{decider.StartChild("a", "t", nil), []schemas.Attributes{
			&schemas.ChildScheduled{WorkflowID: "a"}, &schemas.ChildStartFailed{WorkflowID: "a"},
		}},
		{decider.SignalExternal("a", "s", nil, note), []schemas.Attributes{
			&schemas.SignalExternalScheduled{Control: control}, &schemas.SignalExternalFailed{Control: control},
		}},
		{decider.CancelExternal("a", note), []schemas.Attributes{
			&schemas.CancelExternalScheduled{Control: control}, &schemas.CancelExternalFailed{Control: control},
		}},
		{decider.SetAttributes(nil), []schemas.Attributes{&schemas.AttributesSet{}}},
		{decider.AcquireLock("a"), []schemas.Attributes{
			&schemas.LockRequested{Lock: "a"}, &schemas.LockRefused{Lock: "a"},
		}},
		{decider.ReleaseLock("a"), []schemas.Attributes{
			&schemas.LockReleased{Lock: "a"}, &schemas.LockRefused{Lock: "a", Decision: schemas.DecideReleaseLock},
		}},
		{decider.Complete(nil), []schemas.Attributes{
			&schemas.WorkflowSuccess{}, &schemas.WorkflowCloseFailed{Decision: schemas.DecideCompleteWorkflow},
		}},
		{decider.Fail("", nil), []schemas.Attributes{&schemas.WorkflowFailed{}}},
		{decider.Cancel(nil), []schemas.Attributes{&schemas.WorkflowCanceled{}}},
		{decider.ContinueAsNew(nil), []schemas.Attributes{&schemas.WorkflowContinuedAsNew{}}},
	} {
		for _, a := range tc.answers {
			asks := []match.Ask{{Decision: tc.decision}}
			if err := match.Compare(asks, block(a)); err != nil {
				t.Errorf("%s is not answered by %s:\n%v", tc.decision.Type(), a.EventType(), err)
			}
		}
	}
}

// A difference shows both sides beside each other, with the lines of code that ask.
func TestDifference(t *testing.T) {
	err := match.Compare([]match.Ask{
		{Decision: decider.Schedule("1/mail#1", "mail", nil), Line: "order.go:26"},
		{Decision: decider.Schedule("fraud-check#1", "fraud-check", nil), Line: "order.go:27"},
	}, block(
		&schemas.ActivityScheduled{ActivityID: "ship#1"}, &schemas.ActivityScheduled{ActivityID: "1/mail#1"},
		&schemas.Marker{MarkerName: "change old"},
	))
	want := strings.TrimPrefix(`
  - event 11    ScheduleActivity ship#1         the code does not ask for it
    event 12    ScheduleActivity 1/mail#1       order.go:26
    event 13    RecordMarker change old         no longer asked for, which may be
  +             ScheduleActivity fraud-check#1  order.go:27 asks for it, the history does not have it here`, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// What is given to others is compared apart: code that was changed may give something else.
func TestInputs(t *testing.T) {
	asks := []match.Ask{
		{Decision: decider.Schedule("charge#1", "charge", "a"), Line: "order.go:26"},
		{Decision: decider.StartChild("c", "t", "same")},
		{Decision: decider.Complete(2), Line: "order.go:30"},
	}
	events := func(input, result string) []schemas.Event {
		return block(
			&schemas.ActivityScheduled{ActivityID: "charge#1", Input: schemas.Payload(input)},
			&schemas.ChildScheduled{WorkflowID: "c", Input: schemas.Payload(`"same"`)},
			&schemas.WorkflowSuccess{Result: schemas.Payload(result)},
		)
	}
	if err := match.CompareInputs(asks, events(`"a"`, "2")); err != nil {
		t.Errorf("the same inputs: %v", err)
	}
	err := match.CompareInputs(asks, events("", "3"))
	want := strings.TrimPrefix(`
  - event 11    ScheduleActivity charge#1  has nothing
  +             ScheduleActivity charge#1  order.go:26 gives "a"
  - event 13    close CompleteWorkflow  has 3
  +             close CompleteWorkflow  order.go:30 gives 2`, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

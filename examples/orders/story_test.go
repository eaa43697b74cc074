package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// The whole course of an order that goes well, and of its payment, with a bank that is reached at the second try.
func TestHappyHistory(t *testing.T) {
	flaky := changed(small, func(o *order) { o.Card = cardFlaky })
	s, out := play(t, flaky, nil, func(s *scene) {
		s.open()
		s.Wait(s.run)
		s.text.WriteString(s.History(paymentOf(id)).String())
	})
	if got := decode[receipt](out.Result); got.Number != "C-order-1" {
		t.Errorf("got receipt %q, want C-order-1", got.Number)
	}
	want := `1 WorkflowStarted
2 DeciderScheduled
3 DeciderStarted
4 DeciderCompleted
5 ActivityScheduled charge
6 ActivityStarted charge
7 ActivityRetryScheduled charge bank-unreachable
8 ActivityStarted charge attempt 2
9 ActivitySuccess charge
10 DeciderScheduled
11 DeciderStarted
12 DeciderCompleted
13 WorkflowSuccess
1 WorkflowStarted
2 DeciderScheduled
3 DeciderStarted
4 DeciderCompleted
5 ActivityScheduled reserve
6 ActivityStarted reserve
7 ActivitySuccess reserve
8 DeciderScheduled
9 DeciderStarted
10 DeciderCompleted
11 Marker reserved
12 TimerScheduled window
13 TimerExpired window
14 DeciderScheduled
15 DeciderStarted
16 DeciderCompleted
17 Marker window-over
18 ChildScheduled order-1-payment
19 ChildStarted order-1-payment
20 ChildSuccess order-1-payment
21 DeciderScheduled
22 DeciderStarted
23 DeciderCompleted
24 Marker paid
25 ActivityScheduled ship
26 ActivityStarted ship
27 ActivitySuccess ship
28 DeciderScheduled
29 DeciderStarted
30 DeciderCompleted
31 Marker shipped
32 WorkflowSuccess`
	if diff := cmp.Diff(want, s.text.String()); diff != "" {
		t.Errorf("histories (-want +got):\n%s", diff)
	}
}

// window is the beginning of every history of an order whose customer may cancel now: eleven events.
func window() []schemas.Attributes {
	input, err := schemas.JSONPayload(small)
	if err != nil {
		panic(err) // it is text and numbers
	}
	return []schemas.Attributes{
		&schemas.WorkflowStarted{WorkflowID: id, Run: "R", WorkflowType: typeOrder, Input: input},
		&schemas.DeciderScheduled{}, &schemas.DeciderStarted{}, &schemas.DeciderCompleted{},
		&schemas.ActivityScheduled{ActivityID: actReserve}, &schemas.ActivityStarted{ScheduledEventID: 5},
		&schemas.ActivitySuccess{ScheduledEventID: 5, StartedEventID: 6},
		&schemas.DeciderScheduled{}, &schemas.DeciderStarted{}, &schemas.DeciderCompleted{},
		&schemas.TimerScheduled{TimerID: timerWindow},
	}
}

// Where a cancel and the end of the window meet, the one that is first in the history counts.
func TestRaces(t *testing.T) {
	cancel, over := &schemas.Signal{SignalName: signalCancel}, &schemas.TimerExpired{TimerID: timerWindow}
	started := &schemas.DeciderStarted{}
	for _, tc := range []struct {
		name string
		then []schemas.Attributes
		want []schemas.DecisionType
		mark string // the last one
	}{
		{
			"cancel first",
			[]schemas.Attributes{cancel, over, started},
			[]schemas.DecisionType{schemas.DecideRecordMarker, schemas.DecideRecordMarker, schemas.DecideScheduleActivity},
			stepCanceled,
		},
		{
			"window first",
			[]schemas.Attributes{over, cancel, started},
			[]schemas.DecisionType{schemas.DecideRecordMarker, schemas.DecideRecordMarker, schemas.DecideRecordMarker, schemas.DecideStartChild},
			stepTooLate,
		},
		{
			"S1-20/the window ends before its timer is taken back",
			[]schemas.Attributes{
				cancel, &schemas.DeciderScheduled{}, started, over, &schemas.DeciderCompleted{}, &schemas.Marker{MarkerName: stepReserved},
				&schemas.Marker{MarkerName: stepCanceled}, &schemas.TimerCancelFailed{TimerID: timerWindow, Cause: schemas.CauseTimerIDUnknown},
				&schemas.ActivityScheduled{ActivityID: actRelease}, &schemas.DeciderScheduled{}, started,
			},
			nil, "",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var events []schemas.Event
			for i, a := range append(window(), tc.then...) {
				events = append(events, schemas.Event{ID: int64(i + 1), Attributes: a})
			}
			task, err := decider.NewTask(schemas.DecisionTask{
				WorkflowID: id, Run: "R", Type: typeOrder, StartedID: int64(len(events)), Events: events, Attempt: 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			decisions, err := decideOrder(t.Context(), task)
			if err != nil {
				t.Fatal(err)
			}
			var got []schemas.DecisionType
			mark := ""
			for _, d := range decisions {
				got = append(got, d.Type())
				if m, is := d.Attributes.(*schemas.RecordMarker); is {
					mark = m.MarkerName
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || mark != tc.mark {
				t.Errorf("got the last marker %q, want %q; decisions (-want +got):\n%s", mark, tc.mark, diff)
			}
		})
	}
}

// An order goes on where it was when the server was down in the middle of its window.
func TestServerIsDown(t *testing.T) {
	for name, bounce := range map[string]func(*drovertest.Env){
		"restart": func(e *drovertest.Env) { e.Restart(schemas.Duration(small.Window).Std()) },
		"crash":   func(e *drovertest.Env) { e.Crash(schemas.Duration(small.Window).Std()) },
	} {
		t.Run(name, func(t *testing.T) {
			s, out := play(t, small, nil, func(s *scene) { s.open(); s.armed(); bounce(s.Env) })
			if out.Status != schemas.StatusCompleted || s.attempts(actCharge) != 1 {
				t.Errorf("got %s after %d charges, want completed after one", out.Status, s.attempts(actCharge))
			}
		})
	}
}

// A payment that has begun comes to its own end, also when its order is ended by force.
func TestPaymentOutlivesOrder(t *testing.T) {
	s, out := play(t, small, nil, func(s *scene) {
		s.shopWorker()
		s.Await(id, schemas.EventChildStarted)
		if err := s.run.Terminate(s.t.Context(), nil); err != nil {
			s.t.Fatal(err)
		}
		s.cardDesk()
		if paid := s.Wait(s.Client.Run(paymentOf(id), "")); paid.Status != schemas.StatusCompleted {
			s.t.Errorf("got a payment that is %s, want completed", paid.Status)
		}
	})
	if out.Status != schemas.StatusTerminated || s.attempts(actCharge) != 1 {
		t.Errorf("got %s after %d charges, want terminated and one", out.Status, s.attempts(actCharge))
	}
}

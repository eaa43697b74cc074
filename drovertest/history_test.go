package drovertest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

func TestHistoryString(t *testing.T) {
	child := schemas.Execution{WorkflowID: "parcel-1", Run: "r2"}
	var h drovertest.History
	for i, a := range []schemas.Attributes{
		&schemas.WorkflowStarted{WorkflowID: "order-1", Run: "r1", WorkflowType: "order"},
		&schemas.DeciderScheduled{},
		&schemas.DeciderStarted{ScheduledEventID: 2},
		&schemas.DeciderFailed{ScheduledEventID: 2, StartedEventID: 3, Cause: schemas.CauseInvalidDecision, Reason: "many\nlines"},
		&schemas.ActivityScheduled{ActivityID: "charge"},
		&schemas.ActivityStarted{ScheduledEventID: 5, Attempt: 1},
		&schemas.ActivityRetryScheduled{ScheduledEventID: 5, Attempt: 2, Cause: "card-declined"},
		&schemas.ActivityStarted{ScheduledEventID: 5, Attempt: 2},
		&schemas.ActivityTimedOut{ScheduledEventID: 5, TimeoutType: schemas.TimeoutHeartbeat},
		&schemas.TimerScheduled{TimerID: "remind"},
		&schemas.TimerCanceled{TimerID: "remind", ScheduledEventID: 10},
		&schemas.Signal{SignalName: "paid"},
		&schemas.Marker{MarkerName: "step 2"},
		&schemas.ChildScheduled{WorkflowID: "parcel-1", Run: "r2", WorkflowType: "parcel"},
		&schemas.ChildStarted{WorkflowExecution: child, ScheduledEventID: 14},
		&schemas.ChildFailed{WorkflowExecution: child, ScheduledEventID: 14, StartedEventID: 15, Reason: "lost"},
		&schemas.SignalExternalScheduled{WorkflowID: "stock", SignalName: "free"},
		&schemas.ExternalSignaled{WorkflowExecution: schemas.Execution{WorkflowID: "stock"}, ScheduledEventID: 17},
		&schemas.LockAcquired{Lock: "till", ScheduledEventID: 1},
		&schemas.ActivityFailed{ScheduledEventID: 99, Reason: "a\nstack"},
		&schemas.Unknown{Type: "MoonPhase"},
		&schemas.WorkflowFailed{Reason: "late"},
	} {
		h = append(h, schemas.Event{ID: int64(i + 1), Attributes: a})
	}
	want := `1 WorkflowStarted
2 DeciderScheduled
3 DeciderStarted
4 DeciderFailed ` + string(schemas.CauseInvalidDecision) + `
5 ActivityScheduled charge
6 ActivityStarted charge
7 ActivityRetryScheduled charge card-declined
8 ActivityStarted charge attempt 2
9 ActivityTimedOut charge ` + string(schemas.TimeoutHeartbeat) + `
10 TimerScheduled remind
11 TimerCanceled remind
12 Signal paid
13 Marker step 2
14 ChildScheduled parcel-1
15 ChildStarted parcel-1
16 ChildFailed parcel-1 lost
17 SignalExternalScheduled stock free
18 ExternalSignaled stock
19 LockAcquired till
20 ActivityFailed
21 MoonPhase
22 WorkflowFailed late`
	if diff := cmp.Diff(want, h.String()); diff != "" {
		t.Fatal(diff)
	}
	if got := drovertest.History(nil).String(); got != "" {
		t.Fatalf("got %q for no events", got)
	}
}

func TestOptionsString(t *testing.T) {
	for o, want := range map[drovertest.Options]string{
		{}:                                "namespace=default partitions=1",
		{Namespace: "lab", Partitions: 3}: "namespace=lab partitions=3",
	} {
		if got := o.String(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

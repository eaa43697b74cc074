package execution

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

// The worker that is at an activity is told when its work is wanted no more, and nobody is whose activity only waits, or whose worker
// has not said its name.
func TestWorkersAreTold(t *testing.T) { // S1-13, S1-14
	told := func(reason string, gone bool) CancelRunning {
		return CancelRunning{ScheduledID: 5, Worker: "w-1", Token: "run-1.5.1", Reason: reason, Gone: gone}
	}
	for _, tt := range []struct {
		name string
		end  func(*world)
		want CancelRunning
	}{
		{"the workflow completes", func(w *world) { w.decide(&schemas.CompleteWorkflow{}) }, told("the workflow is closed", true)},
		{
			"the workflow is terminated", func(w *world) { w.do(Terminate{Request: &schemas.ExecutionRequest{}}) },
			told("the workflow is closed", true),
		},
		{"it is canceled", func(w *world) { w.decide(&schemas.RequestCancelActivity{ActivityID: "A"}) }, told(reasonCancel, false)},
		{"it misses its heartbeat", func(w *world) { w.after(time.Minute); w.do(AlarmFired{}) }, told("it has missed its heartbeat", true)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := activity("A")
			a.HeartbeatTimeout = schemas.Seconds(60)
			w := decided(t, a, activity("waits"), activity("nameless"))
			w.report("A", schemas.ReportStarted, func(r *schemas.Report) { r.Identity = "w-1" })
			w.report("nameless", schemas.ReportStarted)
			w.do(Signal{Name: "x"})
			w.effects = nil
			tt.end(w)
			if diff := cmp.Diff([]CancelRunning{tt.want}, of[CancelRunning](w.effects)); diff != "" {
				t.Fatalf("workers are told (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("it times out by a limit that its worker knows", func(t *testing.T) {
		a := activity("A")
		a.StartToCloseTimeout = schemas.Seconds(60)
		w := decided(t, a)
		w.report("A", schemas.ReportStarted, func(r *schemas.Report) { r.Identity = "w-1" })
		w.since()
		w.effects = nil
		w.rings(time.Minute, "ActivityTimedOut A START_TO_CLOSE; DeciderScheduled")
		if got := of[CancelRunning](w.effects); len(got) != 0 {
			t.Fatalf("workers are told %v, want nothing", got)
		}
	})
}

// A new owner tells the worker again what the one before may not have told it.
func TestNewOwnerTellsOfTheCancelRequest(t *testing.T) { // P-1
	w := decided(t, activity("A"), activity("B"))
	w.report("A", schemas.ReportStarted, func(r *schemas.Report) { r.Identity = "w-1" })
	w.report("B", schemas.ReportStarted, func(r *schemas.Report) { r.Identity = "w-2" })
	w.do(Signal{Name: "x"})
	w.decide(&schemas.RequestCancelActivity{ActivityID: "A"})
	requested := w.activity("A").CancelRequested
	w.wantEffects(w.restored().OpenEffects(w.now), CancelRunning{ScheduledID: requested, Worker: "w-1", Token: "run-1.5.1", Reason: reasonCancel})
}

// A new owner treats the children of a run that ended by force again, and tells the parent again: the one before may have done neither.
func TestNewOwnerFinishesTheEnd(t *testing.T) { // P-1
	for _, tt := range []struct {
		policy schemas.ChildPolicy
		parent *schemas.Execution
		want   func(schemas.Execution) []Effect
	}{
		{schemas.ChildTerminate, nil, func(c schemas.Execution) []Effect {
			return []Effect{EndChild{ScheduledID: 5, Child: c, Policy: schemas.ChildTerminate}}
		}},
		{schemas.ChildRequestCancel, &schemas.Execution{WorkflowID: "parent", Run: "run-0"}, func(c schemas.Execution) []Effect {
			return []Effect{EndChild{ScheduledID: 5, Child: c, Policy: schemas.ChildRequestCancel}, Closed{}}
		}},
		{schemas.ChildAbandon, &schemas.Execution{WorkflowID: "parent", Run: "run-0"}, func(schemas.Execution) []Effect { return []Effect{Closed{}} }},
	} {
		t.Run(string(tt.policy), func(t *testing.T) {
			w := begin(t, func(q *schemas.StartRequest) {
				if tt.parent != nil {
					q.Origin = &schemas.StartOrigin{Parent: tt.parent, ParentScheduledEventID: 5, Depth: 1}
				}
			})
			w.decide(childC())
			c := w.s.Children[5]
			w.do(Child{Report: &schemas.ChildReport{
				ParentRun: "run-1", ScheduledEventID: 5, Status: schemas.StatusOpen,
				Child: schemas.Execution{WorkflowID: c.Scheduled.WorkflowID, Run: c.Scheduled.Run},
			}})
			if got := w.s.ChildrenTreated(); got != "" {
				t.Fatalf("the children of an open run are treated by %q, want nothing", got)
			}
			w.do(Terminate{Request: &schemas.ExecutionRequest{ChildPolicy: tt.policy}})
			w.wantEffects(w.restored().OpenEffects(w.now), tt.want(schemas.Execution{WorkflowID: c.Scheduled.WorkflowID, Run: c.Scheduled.Run})...)
			if got := w.s.ChildrenTreated(); got != tt.policy {
				t.Fatalf("the children are treated by %q, want %q", got, tt.policy)
			}
		})
	}
}

// Who knows a run can make up a token, and only a worker of the list can report on it: of another list nothing is believed.
func TestReportsOfAnotherList(t *testing.T) {
	for _, kind := range []schemas.ReportKind{
		schemas.ReportStarted, schemas.ReportSuccess, schemas.ReportFailed, schemas.ReportCanceled, schemas.ReportBegin, schemas.ReportReturned,
	} {
		t.Run(string(kind), func(t *testing.T) {
			w := decided(t, activity("A"))
			w.report("A", schemas.ReportStarted)
			w.since()
			r := &schemas.Report{Kind: kind, Token: "run-1.5.1", ReplyTo: "inbox", Nonce: "n"}
			w.refused(w.do(Report{Report: r, List: "other"}), DeadForeignList)
			w.follows("")
		})
	}
	w := decided(t, activity("A"))
	for token, reason := range map[string]string{"run-1.4.1": DeadClosedActivity, "run-0.5.1": DeadStaleToken} { // there is no list to compare with
		w.refused(w.do(Report{Report: &schemas.Report{Kind: schemas.ReportSuccess, Token: token}, List: "other"}), reason)
	}
	w.report("A", schemas.ReportStarted)
	w.s.Beat(&schemas.Heartbeat{Token: "run-1.5.1", Details: schemas.Text("7")}, "main", w.now)
	if got := w.s.Beat(&schemas.Heartbeat{Token: "run-1.5.1", Details: schemas.Text("8")}, "other", w.now); !got.Gone {
		t.Errorf("a heartbeat of another list is answered %+v, want that the activity is gone", got)
	}
	w.s.Beat(&schemas.Heartbeat{Token: "run-1.5.1"}, "main", w.now)
	if got := string(w.activity("A").BeatDetails); got != "7" {
		t.Errorf("the details of the heartbeats are %q, want those of the last one that has some", got)
	}
}

// An outcome is awaited unless there is something about it to refuse.
func TestOutcomesThatAreAwaited(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Report)
		want   bool
	}{
		{"the current attempt", func(*Report) {}, true},
		{"by a worker of the list", func(m *Report) { m.List = "main" }, true},
		{"by a worker of another list", func(m *Report) { m.List = "other" }, false},
		{"no outcome", func(m *Report) { m.Report.Kind = schemas.ReportStarted }, false},
		{"no token", func(m *Report) { m.Report.Token = "" }, false},
		{"another run", func(m *Report) { m.Report.Token = "run-0.5.1" }, false},
		{"another activity", func(m *Report) { m.Report.Token = "run-1.4.1" }, false},
		{"another attempt", func(m *Report) { m.Report.Token = "run-1.5.2" }, false},
		{"with details that are bad", func(m *Report) { m.Bad = "too large" }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := decided(t, activity("A"))
			m := Report{Report: &schemas.Report{Kind: schemas.ReportSuccess, Token: "run-1.5.1"}}
			tt.change(&m)
			if got := w.s.Awaits(m) == w.activity("A"); got != tt.want {
				t.Fatalf("awaited: %t, want %t", got, tt.want)
			}
		})
	}
	w := decided(t, activity("A"))
	w.refused(w.do(Report{Report: &schemas.Report{Kind: schemas.ReportSuccess, Token: "run-1.5.1"}, Bad: "too large"}), DeadInvalid)
	w.follows("")
}

// The end by a request is in the history as the request is: it is known when it comes again.
func TestTerminateIsKnownToTheClosedRun(t *testing.T) { // P-5
	w := decided(t)
	w.do(Terminate{Request: &schemas.ExecutionRequest{RequestID: "q"}})
	for id, want := range map[string]bool{"q": true, "another": false, "": false} {
		if got := w.restored().Repeated(&schemas.ExecutionRequest{RequestID: id}); got != want {
			t.Errorf("request %q is known: %t, want %t", id, got, want)
		}
	}
}

// What waits for its time is told to whoever parks the run, and comes back as it was: what has been dispatched is not dispatched again.
func TestDelayedTasks(t *testing.T) {
	a, b, c := activity("A"), activity("B"), activity("C")
	a.StartDelay, b.StartDelay = schemas.Seconds(10), schemas.Seconds(20)
	w := decided(t, b, a, c)
	read := w.restored()
	if diff := cmp.Diff([]int64{5, 6}, read.Delayed()); diff != "" {
		t.Fatalf("delayed (-want +got):\n%s", diff)
	}
	read.Dispatched(func(a *Activity) bool { return a.ScheduledID == 5 })
	if diff := cmp.Diff([]int64{5}, read.Delayed()); diff != "" {
		t.Fatalf("delayed once one was dispatched (-want +got):\n%s", diff)
	}
}

// A child that could not be started is none: it takes no room, and no new owner starts it.
func TestRefusedChildIsForgotten(t *testing.T) {
	w := decided(t, childC())
	w.do(Child{Report: &schemas.ChildReport{ParentRun: "run-1", ScheduledEventID: 5, Cause: schemas.CauseWorkflowRunning}})
	w.follows("ChildStartFailed; DeciderScheduled")
	w.wantEffects(w.s.OpenEffects(w.now))
	if n := len(w.s.OpenChildren()); n != 0 {
		t.Fatalf("%d children are open, want none", n)
	}
}

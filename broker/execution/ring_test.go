package execution

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// One late ring makes everything happen whose time has come, in the order of the times.
func TestLateFire(t *testing.T) { // S1-18, S1-34
	w := decided(t, timer("third", 3), timer("first", 1), timer("second", 2), timer("later", 99),
		&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", ScheduleToStartTimeout: seconds(2.5)})
	w.after(3 * sec)
	w.do(AlarmFired{})
	w.follows("TimerExpired first; DeciderScheduled; TimerExpired second; ActivityScheduledTimeout A; TimerExpired third")
	for _, e := range w.events[len(w.events)-4:] {
		if e.Time != w.now {
			t.Fatalf("event %d is of %s, want the ring's time %s", e.ID, e.Time, w.now)
		}
	}
}

func TestLateFireStopsAtTheEnd(t *testing.T) { // S1-4
	w := begin(t, func(q *schemas.StartRequest) { q.ExecutionStartToCloseTimeout = seconds(2) })
	w.decide(timer("before", 1), timer("same", 2), timer("after", 3))
	w.since()
	w.after(time.Hour)
	w.do(AlarmFired{})
	w.follows("TimerExpired before; DeciderScheduled; TimerExpired same; WorkflowTimedOut")
}

// At the same instant the order is that of the rules, whatever order a map is walked in.
func TestSameInstant(t *testing.T) {
	for range 20 {
		w := begin(t, func(q *schemas.StartRequest) {
			q.TaskStartToCloseTimeout, q.ExecutionStartToCloseTimeout = seconds(5), seconds(5)
		})
		decisions := []schemas.DecisionAttributes{timer("T", 5), timer("S", 5)}
		for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"} {
			decisions = append(decisions, &schemas.ScheduleActivity{
				ActivityID: id, ActivityType: "work", ScheduleToCloseTimeout: seconds(5), StartToCloseTimeout: seconds(5), HeartbeatTimeout: seconds(5),
			})
		}
		w.decide(decisions...)
		for _, a := range w.s.OpenActivities() {
			w.report(a.Scheduled.ActivityID, schemas.ReportStarted)
		}
		w.do(Signal{Name: "x"})
		w.do(Taken{})
		w.since()
		w.after(5 * sec)
		w.do(AlarmFired{})
		var want strings.Builder
		want.WriteString("DeciderTimedOut START_TO_CLOSE; DeciderScheduled")
		for _, id := range "abcdefghijklmn" {
			want.WriteString("; ActivityTimedOut " + string(id) + " SCHEDULE_TO_CLOSE")
		}
		w.follows(want.String() + "; TimerExpired T; TimerExpired S; WorkflowTimedOut")
	}
}

// What has ended at a ring is not started, sent or ended once more by what else was due for it.
func TestOneEndAtAFire(t *testing.T) {
	for range 10 { // a map is walked in any order
		w := decided(t,
			&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", ScheduleToCloseTimeout: seconds(5), ScheduleToStartTimeout: seconds(5)},
			&schemas.ScheduleActivity{ActivityID: "B", ActivityType: "work", ScheduleToCloseTimeout: seconds(5), StartDelay: seconds(5)})
		w.after(5 * sec)
		w.wantEffects(w.do(AlarmFired{}))
		w.follows("ActivityTimedOut A SCHEDULE_TO_CLOSE; DeciderScheduled; ActivityTimedOut B SCHEDULE_TO_CLOSE")
	}
}

// A sum that wraps around would be due at once.
func TestEndlessLimits(t *testing.T) {
	const longest = schemas.Duration(1<<63 - 1)
	w := begin(t, func(q *schemas.StartRequest) {
		q.ExecutionStartToCloseTimeout, q.TaskStartToCloseTimeout, q.TaskScheduleToStartTimeout = longest, longest, longest
	})
	w.do(AlarmFired{})
	w.do(Taken{})
	w.do(AlarmFired{})
	w.answer(
		&schemas.ScheduleTimer{TimerID: "T", StartToFireTimeout: longest},
		&schemas.ScheduleActivity{
			ActivityID: "A", ActivityType: "work", ScheduleToStartTimeout: longest, StartToCloseTimeout: longest, ScheduleToCloseTimeout: longest, HeartbeatTimeout: longest,
		},
		&schemas.ScheduleActivity{ActivityID: "B", ActivityType: "work", StartDelay: longest, ScheduleToStartTimeout: longest},
	)
	w.report("A", schemas.ReportStarted)
	w.rest(100 * 365 * 24 * time.Hour)
	w.follows("DeciderStarted; DeciderCompleted; TimerScheduled T; ActivityScheduled A; ActivityScheduled B; ActivityStarted A")
}

func TestFireSparesWhatIsNotCommitted(t *testing.T) { // P-15: its record has no server time yet
	w := begin(t)
	w.decide(&schemas.ScheduleTimer{TimerID: "T", StartToFireTimeout: schemas.Seconds(5)})
	w.after(time.Minute)
	set := w.s.Timers["T"].ScheduledID
	for _, uncommitted := range []int64{set, set - 1} {
		w.do(AlarmFired{Uncommitted: uncommitted})
		if len(w.s.Timers) == 0 {
			t.Fatalf("a timer of event %d expired while everything from event %d on was on its way", set, uncommitted)
		}
	}
	w.do(AlarmFired{Uncommitted: set + 1})
	if len(w.s.Timers) > 0 {
		t.Fatal("a committed timer did not expire")
	}
}

// The wait of a decision begins when it can be taken: with the end of the decider before it, or of a pause (P-15).
func TestFireSparesADecisionThatCannotBeTakenYet(t *testing.T) {
	request := &schemas.ExecutionRequest{Reason: "look"}
	for name, free := range map[string]func(*world){
		"an answer": func(w *world) { w.answer() },
		"a failure": func(w *world) { w.do(Refuse{Cause: schemas.CauseDeciderError}) },
		"a resume":  func(w *world) { w.answer(); w.do(Pause{Request: request}); w.do(Resume{Request: request}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, func(q *schemas.StartRequest) { q.TaskScheduleToStartTimeout = seconds(5) })
			w.do(Taken{})
			w.do(Signal{Name: "x"})
			w.after(sec)
			free(w)
			w.since()
			w.after(6 * sec)
			w.do(AlarmFired{Uncommitted: w.s.LastID})
			w.follows("")
			w.do(AlarmFired{Uncommitted: w.s.LastID + 1})
			w.follows("DeciderTimedOut SCHEDULE_TO_START; DeciderScheduled")
		})
	}
}

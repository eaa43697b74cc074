package execution

import (
	"fmt"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// A run of more than ten thousand events, handed from owner to owner by snapshots.
func TestLongHistory(t *testing.T) { // S1-43, S1-40
	const activities = 2000
	w := begin(t)
	for i := range activities {
		w.after(sec)
		w.decide(activity(fmt.Sprintf("a%d", i)))
		w.report(fmt.Sprintf("a%d", i), schemas.ReportStarted)
		w.report(fmt.Sprintf("a%d", i), schemas.ReportSuccess)
		if i%100 == 0 {
			b, err := w.s.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > 2000 {
				t.Fatalf("after %d events the snapshot has %d bytes; what is closed must not stay in it", w.s.LastID, len(b))
			}
			if w.s, err = Restore(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.decide(&schemas.CompleteWorkflow{})
	if want := 2 + activities*6 + 3; len(w.events) != want || w.s.LastID != int64(want) || !w.s.Closed() {
		t.Fatalf("got %d events, the last is %d, closed %v; want %d", len(w.events), w.s.LastID, w.s.Closed(), want)
	}
	count := map[schemas.EventType]int{}
	for _, e := range w.events {
		count[e.Type()]++
	}
	for _, typ := range []schemas.EventType{schemas.EventActivityScheduled, schemas.EventActivityStarted, schemas.EventActivitySuccess} {
		if count[typ] != activities { // each activity costs at least three events
			t.Fatalf("got %d %s, want %d", count[typ], typ, activities)
		}
	}
}

// As many branches as a run may have, joined by a decider that is asked once for all that came in while it was at work.
func TestManyInParallel(t *testing.T) { // S1-34, S1-36, S1-40, S1-43
	w := begin(t)
	var all []schemas.DecisionAttributes
	for i := range w.c.OpenActivities {
		all = append(all, &schemas.ScheduleActivity{ActivityID: fmt.Sprintf("a%d", i), ActivityType: "work", StartToCloseTimeout: seconds(30)})
	}
	w.decide(all...)
	for _, a := range w.s.OpenActivities() {
		w.report(a.Scheduled.ActivityID, schemas.ReportStarted)
	}
	w.do(Signal{Name: "x"})
	w.do(Taken{})
	for i := range w.c.OpenActivities / 2 {
		w.report(fmt.Sprintf("a%d", i), schemas.ReportSuccess)
	}
	w.after(9 * sec)
	w.answer()
	w.after(21 * sec)
	w.do(AlarmFired{})
	count := map[schemas.EventType]int{}
	for _, e := range w.events {
		count[e.Type()]++
	}
	if got := count[schemas.EventDeciderScheduled]; got != 3 { // the start, the signal, and all closes together
		t.Fatalf("the decider was asked %d times, want 3", got)
	}
	if ok, late := count[schemas.EventActivitySuccess], count[schemas.EventActivityTimedOut]; ok != 500 || late != 500 || len(w.s.Activities) != 0 {
		t.Fatalf("%d succeeded, %d timed out, %d are open; want 500, 500, none", ok, late, len(w.s.Activities))
	}
}

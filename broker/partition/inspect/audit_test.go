package inspect_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// audit answers at once: nothing that is asked for must be read.
func audit(t *testing.T, h *fakeHost, wids ...string) (a *schemas.AuditResponse) {
	t.Helper()
	inspector(t.Context(), h).Audit(&schemas.AuditRequest{Workflows: wids},
		func(v any) { a = v.(*schemas.AuditResponse) })
	if a == nil || a.Error != nil {
		t.Fatalf("answered %+v", a)
	}
	return a
}

// An audit tells at once what a run in memory waits for. While something of it is on its way it is
// busy, and nobody may judge it; one whose history cannot be followed is unreadable, and nothing
// else is said of it.
func TestAuditOfARunInMemory(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*fakeHost, *actor.Run)
		busy       bool
		unreadable bool
		empty      bool   // the id has no run
		decision   string // "-": none
	}{
		"quiet": {change: func(*fakeHost, *actor.Run) {}},
		"pending": {busy: true, change: func(_ *fakeHost, r *actor.Run) {
			r.Pending = make([]actor.Group, 1)
		}},
		"being written": {busy: true, change: func(_ *fakeHost, r *actor.Run) {
			r.Inflight = &actor.Commit{}
		}},
		"of which more is read": {busy: true, change: func(_ *fakeHost, r *actor.Run) {
			r.Load.Begin()
		}},
		"with messages": {busy: true, change: func(_ *fakeHost, r *actor.Run) {
			r.Mailbox = make([]*actor.Message, 1)
		}},
		"without its alarm": {busy: true, change: func(_ *fakeHost, r *actor.Run) {
			r.Uncovered = make([]*watermark.Completion, 1)
		}},
		"whose alarm is on its way": {busy: true, change: func(_ *fakeHost, r *actor.Run) {
			r.Alarm.Way = &actor.SentAlarm{}
		}},
		"whose alarm is to be looked at": {busy: true, change: func(_ *fakeHost, r *actor.Run) {
			r.Alarm.Queued = true
		}},
		"with an offer": {busy: true, change: func(_ *fakeHost, r *actor.Run) {
			r.Tasks.Offers = make([]*actor.Offer, 1)
		}},
		"with a key that changes": {busy: true, change: func(h *fakeHost, _ *actor.Run) {
			h.keysBusy = true
		}},
		"that goes on in another": {busy: true, decision: "-", change: func(_ *fakeHost, r *actor.Run) {
			r.State.Status = schemas.StatusContinuedAsNew
		}},
		"paused": {decision: "-", change: func(_ *fakeHost, r *actor.Run) {
			r.State.Paused = &schemas.WorkflowPaused{}
		}},
		"closed": {decision: "-", change: func(_ *fakeHost, r *actor.Run) { closed(r.State) }},
		"damaged": {unreadable: true, change: func(_ *fakeHost, r *actor.Run) {
			r.Load.Unreadable(false)
			r.Damage.Err = errors.New("record 5 is gone")
			r.Mailbox = make([]*actor.Message, 1)
		}},
		"without a run": {empty: true, change: func(_ *fakeHost, r *actor.Run) { r.State = nil }},
		"without a run, with messages": {
			empty: true, busy: true, change: func(_ *fakeHost, r *actor.Run) {
				r.State, r.Mailbox = nil, make([]*actor.Message, 1)
			},
		},
	} {
		r := quiet("o")
		h := &fakeHost{runs: map[string]*actor.Run{"o": r}}
		c.change(h, r)
		a := audit(t, h, "o")
		if a.Partition != 4 || a.Owner != "a" || !a.Recovering || a.Inbox != 12 || len(a.Runs) != 1 {
			t.Fatalf("%s: answered %+v", name, a)
		}
		got := a.Runs[0]
		if got.WorkflowID != "o" || got.Busy != c.busy || got.Unreadable != "" != c.unreadable {
			t.Errorf("%s: %+v; want busy: %t, unreadable: %t", name, got, c.busy, c.unreadable)
		}
		if c.unreadable || c.empty {
			if got.Run != "" || got.Due != 0 || got.Decision != "" {
				t.Errorf("%s: more is said of it: %+v", name, got)
			}
			continue
		}
		open, decides := r.Open(), c.decision == ""
		if got.Run != "o1" || got.Due == wantedAlarm != open || got.Decision != "" != decides {
			t.Errorf("%s: %+v; want an alarm: %t, a decision: %t", name, got, open, decides)
		}
	}
}

// What does not fit one answer is left for the next, from the end; the first is always told of,
// however much it has.
func TestAuditOfManyActivities(t *testing.T) {
	h := &fakeHost{runs: make(map[string]*actor.Run)}
	var wids []string
	for i := range 10 {
		wid := fmt.Sprint("w", i)
		r := quiet(wid)
		r.State.Activities = make(map[int64]*execution.Activity)
		for id := range int64(1000) {
			r.State.Activities[id] = &execution.Activity{
				ScheduledID: id, Attempt: 1, Scheduled: &schemas.ActivityScheduled{},
			}
		}
		h.runs[wid] = r
		wids = append(wids, wid)
	}
	answers := 0
	for ; len(wids) > 0; answers++ {
		a := audit(t, h, wids...)
		if len(a.Runs) == 0 {
			t.Fatalf("%q: nothing is answered", wids)
		}
		for i, r := range a.Runs {
			if r.WorkflowID != wids[i] || len(r.Activities) != 1000 {
				t.Errorf("answered for %s, %d activities; want all of %s",
					r.WorkflowID, len(r.Activities), wids[i])
			}
		}
		wids = wids[len(a.Runs):]
	}
	if answers < 2 {
		t.Error("ten thousand activities are in one answer")
	}
}

// Runs that are not in memory are read, and the answers stand in the order of the questions.
func TestAuditOfStoredRuns(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		h := &fakeHost{
			runs:    map[string]*actor.Run{"memory": quiet("memory")},
			backlog: "forlorn",
			stored: map[string]*execution.State{
				"wanted/wanted1": state("wanted"), "forlorn/forlorn1": state("forlorn"),
				"closed/closed1": state("closed"),
			},
		}
		closed(h.stored["closed/closed1"])
		wids := []string{"wanted", "damaged", "memory", "forlorn", "closed"}
		q := &schemas.AuditRequest{Workflows: wids}
		for _, wid := range wids {
			q.Runs = append(q.Runs, wid+"1")
		}
		answers := make(chan *schemas.AuditResponse, 1)
		inspector(t.Context(), h).Audit(q, func(v any) { answers <- v.(*schemas.AuditResponse) })
		a := <-answers
		if a.Error != nil || len(a.Runs) != len(wids) {
			t.Fatalf("answered %+v", a)
		}
		for i, want := range []struct {
			decision        string
			due, unreadable bool
		}{
			{decision: schemas.DecisionScheduled, due: true},
			{unreadable: true},
			{decision: schemas.DecisionScheduled, due: true},
			{decision: schemas.DecisionForlorn, due: true},
			{},
		} {
			got := a.Runs[i]
			if got.WorkflowID != wids[i] || got.Busy || got.Unreadable != "" != want.unreadable ||
				got.Decision != "" != (want.decision != "") || got.Due != 0 != want.due {
				t.Errorf("%s: got %+v, want %+v", wids[i], got, want)
			}
			if wids[i] == "forlorn" != (got.Decision == schemas.DecisionForlorn) {
				t.Errorf("%s: its decision is %q", wids[i], got.Decision)
			}
		}
	})
}

package ahead_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/decisions"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// A task is offered to the worker that keeps the run, with what it needs to decide, if that works
// its list and is not busy, and if it is known what follows: the run waits for nothing else and
// stands still, and the worker has seen all of it.
func TestWhichTasksAreOfferedAhead(t *testing.T) { // ADR 0031
	for name, c := range map[string]struct {
		change func(*scene)
		want   bool
	}{
		"as it should be": {func(*scene) {}, true},
		"nobody keeps it": {func(s *scene) { s.run.Decider.Sticky = "" }, false},
		"kept by another": {func(s *scene) { s.run.Decider.Sticky = "x" }, false},
		"on another list": {func(s *scene) {
			s.activity.Scheduled.List = "other"
		}, false},
		"the worker is busy": {func(s *scene) {
			s.decisions.Deciders.Workers.Refused("w", false, time.Second)
		}, false},
		"not idempotent": {func(s *scene) {
			s.activity.Scheduled.NotIdempotent = true
		}, false},
		"to be canceled": {func(s *scene) {
			s.activity.CancelRequested = 6
		}, false},
		"one of two": {func(s *scene) {
			s.run.State.Activities[9] = &execution.Activity{}
		}, false},
		"of an earlier decision": {func(s *scene) {
			s.run.State.Decision.Previous = s.activity.ScheduledID
		}, false},
		"a signal has come": {func(s *scene) {
			s.run.State.Step(s.Env.Config(), execution.Signal{Name: "s"}, s.host.Now())
		}, false},
		"a decider is at it": {func(s *scene) {
			s.run.State.Decision.Started = 6
		}, false},
		"the decider has failed": {func(s *scene) {
			s.run.State.Decision.Failures = 1
		}, false},
		"paused": {func(s *scene) {
			s.run.State.Paused = &schemas.WorkflowPaused{}
		}, false},
		"pending": {func(s *scene) {
			s.run.Pending = make([]actor.Group, 1)
		}, false},
		"being written": {func(s *scene) {
			s.run.Inflight = &actor.Commit{}
		}, false},
		"a decider is asked": {func(s *scene) {
			s.run.Decider.Sent(&actor.Ask{}, false)
		}, false},
		"a message waits": {func(s *scene) {
			s.run.Mailbox = make([]*actor.Message, 1)
		}, false},
		"the window is not read": {func(s *scene) {
			s.run.Window.From = s.run.State.LastID
		}, false},
		"much to send": {func(s *scene) {
			s.run.State.Context = make(schemas.Payload, decisions.DeferSize+1)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				k := newRig(t)
				s := k.scene()
				r, a := s.run, s.activity
				c.change(s)
				done, offered := false, false
				hold := watermark.New(func() { done = true })
				k.do(func() { offered = k.Offer(r, a, hold); hold.Release() })
				if offered != c.want || len(k.offered) == 1 != c.want || done == c.want {
					t.Errorf("offered: %t, %d times, held: %t; want %t",
						offered, len(k.offered), !done, c.want)
					return
				}
				if !c.want {
					return
				}
				task := k.offered[0]
				ends, last := task.Events[len(task.Events)-1].ID, r.State.LastID
				if task.Run != "r1" || task.StartedID != last+schemas.AheadEvents || ends != last {
					t.Errorf("the task is %+v, its window ends with event %d", task, ends)
				}
				if w := task.Ahead.Task; w.Token != execution.Token("r1", a.ScheduledID, 1) || w.Input != nil {
					t.Errorf("the task of the activity is %+v", w)
				}
			})
		})
	}
}

// A task that the worker refuses goes to whoever is idle. After a decision in vain such tasks are
// not offered to it at first, then again; those of another type are.
func TestOfferAheadThatIsRefused(t *testing.T) { // ADR 0031
	virtual.Run(t, func(t *testing.T) {
		k := newRig(t)
		s := k.scene()
		r, a := s.run, s.activity
		done := false
		hold := watermark.New(func() { done = true })
		k.do(func() {
			k.Offer(r, a, hold)
			hold.Release()
			for _, f := range r.Tasks.Offers { // or nobody hears of it
				k.Refused(f, false)
			}
			busy := k.scene()
			busy.activity.Scheduled.ActivityType = "other"
			if k.Offer(busy.run, busy.activity, nil) {
				t.Error("the next task is offered to a worker that has just refused one")
			}
		})
		k.do(func() {
			if k.others != 1 || done {
				t.Errorf("offered %d times to others, held: %t", k.others, !done)
			}
			if !k.dispatch.HasOffers() || len(r.Tasks.Offers) != 1 || r.Tasks.Offers[0].Ahead != nil {
				t.Errorf("the run has offers %+v, want that to whoever is idle", r.Tasks.Offers)
			}
			delete(r.State.Activities, a.ScheduledID) // its outcome
			if k.dispatch.OffersMet(r); !done {
				t.Error("the effect is held for ever")
			}
		})
		offers := func(typ string) (offered bool) {
			s := k.scene()
			s.activity.Scheduled.ActivityType = typ
			k.do(func() {
				if offered = k.Offer(s.run, s.activity, nil); offered {
					k.dispatch.EndOffer(s.run.Tasks.Offers[0])
				}
			})
			return offered
		}
		if offers("work") {
			t.Error("offered again at once after a decision in vain")
		}
		if !offers("other") {
			t.Error("a task of another type is not offered")
		}
		for range 100 {
			if offers("work") {
				return
			}
		}
		t.Error("never offered again")
	})
}

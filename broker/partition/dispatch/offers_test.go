package dispatch_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// A task that is offered comes to its list once if nobody takes the offer, and not at all if its
// outcome is there or on its way. Whoever gets it must ask if somebody may be at it. The effect is
// held until one of the two is so.
func TestWhatBecomesOfAnOffer(t *testing.T) { // ADR 0023, P-1
	virtual.Run(t, func(t *testing.T) {
		k := newRig(t, env.Options{})
		met := func(r *actor.Run) { delete(r.State.Activities, 5) }
		for list, c := range map[string]struct {
			end                 func(*actor.Run, uint64)
			stored, asks, holds bool
		}{
			"refused": {func(_ *actor.Run, id uint64) { k.Refused(id, false) }, true, false, false},
			"refused-twice": {func(_ *actor.Run, id uint64) {
				k.Refused(id, false)
				k.Refused(id, true)
			}, true, false, false},
			"nobody-there":    {func(_ *actor.Run, id uint64) { k.Refused(id, true) }, true, false, false},
			"without-outcome": {func(*actor.Run, uint64) {}, true, true, false},
			"of-who-leaves":   {func(*actor.Run, uint64) { k.StoreOffers() }, true, true, false},
			"met": {func(r *actor.Run, id uint64) {
				met(r)
				k.OffersMet(r)
				k.Refused(id, false)
			}, false, false, false},
			"met-soon": {func(r *actor.Run, id uint64) {
				met(r)
				r.Pending = make([]actor.Group, 1)
				k.Refused(id, false)
			}, false, false, true},
			"announced": {func(r *actor.Run, _ uint64) {
				r.Tasks.Offers[0].Stored = true
			}, false, false, false},
			"of-who-closed": {func(r *actor.Run, id uint64) {
				r.State.Status = schemas.StatusTerminated
				k.Refused(id, false)
			}, false, false, false},
		} {
			r, a := scheduled(list)
			k.Took(a.Scheduled.ActivityType, schemas.Duration(time.Millisecond))
			var done *bool
			k.do(func() {
				done = held(func(c *watermark.Completion) { k.Task(r, a, c, false, false) })
			})
			before := k.stored(list)
			if k.offered[list] != 1 || len(before) != 0 || *done || !k.HasOffers() {
				t.Fatalf("%s: offered %d times, stored %+v, done: %t",
					list, k.offered[list], before, *done)
			}
			k.do(func() { c.end(r, r.Tasks.Offers[0].ID) })
			k.rest(2 * schemas.OfferPatience)
			tasks := k.stored(list)
			if len(tasks) == 1 != c.stored || len(tasks) > 1 ||
				c.stored && tasks[0].NotIdempotent != c.asks {
				t.Errorf("%s: got %+v on the list, want one: %t, which asks: %t",
					list, tasks, c.stored, c.asks)
			}
			k.do(func() {
				if *done == c.holds || k.HasOffers() != c.holds || k.Busy() {
					t.Errorf("%s: done: %t, offers: %t, busy: %t",
						list, *done, k.HasOffers(), k.Busy())
				}
				if c.holds { // its record is in the history
					r.Pending = nil
					k.OffersMet(r)
				}
				if !*done || k.HasOffers() {
					t.Errorf("%s: the effect is held for ever", list)
				}
			})
		}
	})
}

// Only what is over soon is offered, and only by an owner that stays, to a list whose workers were
// idle. The others come to their list at once.
func TestWhichTasksAreOffered(t *testing.T) { // ADR 0023
	virtual.Run(t, func(t *testing.T) {
		for list, c := range map[string]struct {
			change  func(*rig, *execution.Activity)
			offered bool
		}{
			"quick": {func(*rig, *execution.Activity) {}, true},
			"slow": {func(k *rig, a *execution.Activity) {
				k.Took(a.Scheduled.ActivityType, schemas.Duration(time.Second))
			}, false},
			"urgent": {func(_ *rig, a *execution.Activity) { a.Scheduled.TaskPriority = 1 }, false},
			"begun":  {func(_ *rig, a *execution.Activity) { a.Started = 6 }, false},
			"leaves": {func(k *rig, _ *execution.Activity) { k.host.leaving = true }, false},
			"busy": {func(k *rig, _ *execution.Activity) {
				r, a := scheduled("busy")
				k.Task(r, a, nil, false, false)
				k.Refused(r.Tasks.Offers[0].ID, true)
				k.offered["busy"]-- // this one
			}, false},
		} {
			k := newRig(t, env.Options{})
			r, a := scheduled(list)
			k.Took(a.Scheduled.ActivityType, schemas.Duration(time.Millisecond))
			before := 0
			k.do(func() {
				c.change(k, a)
				if list == "busy" {
					before = 1
				}
				k.Task(r, a, nil, false, false)
			})
			k.rest(moment)
			offered, stored := k.offered[list], len(k.stored(list))-before
			if offered == 1 != c.offered || stored == 0 != c.offered {
				t.Errorf("%s: offered %d times, stored %d times, want an offer: %t",
					list, offered, stored, c.offered)
			}
		}
	})
}

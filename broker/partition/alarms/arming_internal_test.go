package alarms

import (
	"context"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/internal/virtual"
)

// Those who stand in line are looked at when their time has come, in their order; whoever closes leaves it at once, and may come back.
func TestArmingLine(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		h := &fakeHost{}
		lines := deadlines.New[*actor.Run]()
		all := New(h, env.Owner{Env: &env.Env{Options: env.Options{AlarmDelay: time.Second}}, Loop: loop.New()}, &lines)
		began := time.Now()
		at := map[string]time.Duration{}
		look := func() {
			for _, r := range h.marked {
				at[r.WorkflowID] = time.Since(began)
			}
			h.marked = nil
		}
		enter := func(runs ...*actor.Run) {
			for _, r := range runs {
				all.armLater(r)
			}
		}
		a, b, c, d, e := loadingRun("a"), loadingRun("b"), loadingRun("c"), loadingRun("d"), loadingRun("e")
		enter(a, b, c)
		all.Loop.After(300*time.Millisecond, func() {
			all.ArmNever(b)
			all.ArmNever(b) // has left
			if b.Alarm.Queued {
				t.Error("a run that has closed is kept until its time has come")
			}
			enter(d)
		})
		all.Loop.After(600*time.Millisecond, func() { enter(b) })
		all.Loop.After(5*time.Second, func() { enter(e) }) // after an empty line
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			all.Loop.Run(ctx, look)
		}()
		time.Sleep(10 * time.Second)
		stop()
		<-done
		want := map[string]time.Duration{"a": 1000, "c": 1000, "d": 1300, "b": 1600, "e": 6000}
		for wid, ms := range want {
			if at[wid] != ms*time.Millisecond {
				t.Errorf("%s was looked at after %v, want %v", wid, at[wid], ms*time.Millisecond)
			}
		}
		for _, r := range []*actor.Run{a, b, c, d, e} {
			if r.Alarm.Queued || r.Alarm.Place != 0 {
				t.Errorf("%s is still in the line", r.WorkflowID)
			}
		}
		if _, left := all.deadlines.Line.Wait(time.Now()); len(at) != len(want) || left {
			t.Errorf("looked at %v, and some are left: %v", at, left)
		}
	})
}

// fakeHost is a partition that only notes whom it is to look at.
type fakeHost struct {
	Host
	marked []*actor.Run
}

func (h *fakeHost) Mark(r *actor.Run) { h.marked = append(h.marked, r) }

// loadingRun is a run that is being read.
func loadingRun(wid string) *actor.Run {
	r := &actor.Run{WorkflowID: wid}
	r.Load.Begin()
	return r
}

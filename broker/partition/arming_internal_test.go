package partition

import (
	"context"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/internal/virtual"
)

// Those who stand in line are looked at when their time has come, in their order; whoever closes leaves it at once, and may come back.
func TestArmingLine(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		p := &Partition{b: &env.Env{Options: env.Options{AlarmDelay: time.Second}}, loop: loop.New()}
		began := time.Now()
		at := map[string]time.Duration{}
		look := func() {
			for _, r := range p.dirty {
				at[r.WorkflowID] = time.Since(began)
			}
			p.dirty = nil
		}
		enter := func(all ...*actor.Run) {
			for _, r := range all {
				p.armLater(r)
			}
		}
		a, b, c, d, e := &actor.Run{WorkflowID: "a", Loading: true}, &actor.Run{WorkflowID: "b", Loading: true}, &actor.Run{WorkflowID: "c", Loading: true}, &actor.Run{WorkflowID: "d", Loading: true}, &actor.Run{WorkflowID: "e", Loading: true}
		enter(a, b, c)
		p.loop.After(300*time.Millisecond, func() {
			p.armNever(b)
			p.armNever(b) // has left
			if b.Alarm.Queued {
				t.Error("a run that has closed is kept until its time has come")
			}
			enter(d)
		})
		p.loop.After(600*time.Millisecond, func() { enter(b) })
		p.loop.After(5*time.Second, func() { enter(e) }) // after an empty line
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.loop.Run(ctx, look)
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
		if _, left := p.deadlines.Line.Wait(time.Now()); len(at) != len(want) || left {
			t.Errorf("looked at %v, and some are left: %v", at, left)
		}
	})
}

package dispatch

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// inquireTries is how often a worker is asked, and inquireWait how long each answer may take: a
	// worker that reconnects must have the time for it.
	inquireTries = 5
	inquireWait  = time.Second
)

// Inquire asks a worker whether it is still at an attempt that came as an offer. It is asked again
// by whoever is given the task next, so an owner that dies meanwhile owes nothing.
func (d *Dispatch) Inquire(r *actor.Run, f execution.Inquire) {
	o := &d.offers
	if o.asking[f.Token] {
		return
	}
	body, err := schemas.MarshalJSON(
		&schemas.Control{V: schemas.Version, Kind: schemas.ControlHolds, Token: f.Token})
	if err != nil {
		d.Log.WithError(err).Error("a worker cannot be asked")
		return
	}
	if o.asking == nil {
		o.asking = make(map[string]bool)
	}
	o.asking[f.Token] = true
	wid, gone := r.WorkflowID,
		execution.Gone{Run: r.State.Run, ScheduledID: f.ScheduledID, Attempt: f.Attempt}
	d.Env.Work.Go(func() {
		holds := workerHas(d.Env, f.Worker, body)
		d.Loop.Post(func() {
			delete(o.asking, f.Token)
			if holds || d.host.Leaving() || !d.host.Valid() {
				return
			}
			d.Log.WithField("workflow", wid).WithField("worker", f.Worker).
				Warn("a worker does not answer for an activity that it was at; it is interrupted")
			d.host.Deliver(d.host.Get(wid),
				&actor.Message{WorkflowID: wid, Event: gone, At: d.host.Now(), Log: intake.None})
		})
	})
}

// workerHas asks a worker. Without a connection nobody is accused.
func workerHas(b *env.Env, worker string, question []byte) bool {
	for range inquireTries {
		ctx, cancel := context.WithTimeout(b.Background, inquireWait)
		began := time.Now()
		m, err := b.Conn.Request(ctx, b.NS.Control(worker), nil, question)
		cancel()
		var a schemas.ControlAnswer
		if b.Background.Err() != nil ||
			err == nil && schemas.Unmarshal(m.Data, &a) == nil && a.Holds {
			return true
		}
		if sleep.For(b.Background, inquireWait-time.Since(began)) != nil {
			return true
		}
	}
	return !b.Conn.NATS().IsConnected()
}

package partition

import (
	"context"
	"encoding/json"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// listen subscribes to everything the owner of a partition must hear, then begins to read the two
// logs. It returns what undoes it, even with an error.
func (p *Partition) listen(ctx context.Context) (closers []func(), err error) {
	subscribe := func(subj string, fn func(natsconn.Msg)) {
		if err != nil {
			return
		}
		var s natsconn.Subscription
		if s, err = p.Env.Conn.Subscribe(subj, "", fn); err == nil {
			closers = append(closers, func() { s.Close() })
			p.inputs.subscriptions = append(p.inputs.subscriptions, s)
		}
	}
	p.inputs.replies = p.Env.Conn.NATS().NewInbox() + "."
	subscribe(p.inputs.replies+">", p.answered)
	p.inputs.subscriptions = nil // that one is heard to the end
	subscribe(p.Env.NS.Owner(p.Partition), p.asked)
	subscribe(p.Env.NS.Fire(p.Partition), p.alarms.Take)
	subscribe(p.Env.NS.AllOutcomes(p.Partition), p.outcome)
	subscribe(p.Env.NS.AllBeats(p.Partition), p.beat)
	subscribe(p.Env.NS.AllAnnounce(), func(m natsconn.Msg) {
		typ, err := subject.LastToken(m.Subject)
		if err != nil {
			return
		}
		var a schemas.Announcement
		if schemas.Unmarshal(m.Data, &a) == nil && a.Left != "" {
			p.Loop.Post(func() { p.decisions.Deciders.Workers.Leave(a.Left) })
			return
		}
		p.Loop.Post(func() { p.decisions.Deciders.Backlog.Announced(typ) })
	})
	if err != nil {
		return closers, err
	}
	for _, in := range p.intake.Logs {
		reader, err := p.follow(ctx, in)
		if err != nil {
			return closers, err
		}
		closers = append(closers, func() { reader.Close() })
		p.inputs.readers = append(p.inputs.readers, reader)
		p.watch(reader)
	}
	p.Loop.Post(p.decisions.MeetHanded)
	p.Loop.Post(p.progress)
	return closers, nil
}

// watch begins anew when a log can no longer be followed, as after the loss of its end on a server
// that this one is not connected to: nobody else would read what is stored from then on (P-9).
func (p *Partition) watch(reader *natsconn.Reader) {
	p.Env.Work.Go(func() {
		<-reader.Done() // it is closed with the term
		if err := reader.Err(); err != nil {
			p.Loop.Post(func() { p.fail("follow a log: %w", err) })
		}
	})
}

// tellOwned says that this broker serves the partition: whoever waits for an answer of the owner
// before asks again (ADR 0041), and who gets a task that was given to somebody before asks first
// (ADR 0049). One that has left in good order, and nothing undone, owes nobody an answer.
func (p *Partition) tellOwned() {
	if p.handover.Orderly && len(p.handover.Recovered) == 0 || p.handover.Before == 0 {
		return
	}
	if err := p.Env.Conn.Publish(p.Env.NS.Owned(p.Partition), nil, nil); err != nil {
		p.Log.WithError(err).Debug(
			"nobody is told that the partition is owned; whoever waits for an answer asks again when it is late")
	}
}

// beat takes a heartbeat: nothing is written, only the deadline moves.
func (p *Partition) beat(m natsconn.Msg) {
	var h schemas.Heartbeat
	_, wid, list, err := subject.ParseBeat(m.Subject)
	if err == nil {
		err = natsconn.Decode(m.Header, m.Data, &h)
	}
	answer := func(a schemas.BeatAnswer) {
		a.V = schemas.Version
		if body, err := json.Marshal(&a); err == nil && subject.Answerable(m.Reply) {
			if err := p.Env.Conn.Publish(m.Reply, nil, body); err != nil {
				p.Log.WithError(err).Debug("a heartbeat cannot be answered")
			}
		}
	}
	if err != nil {
		answer(schemas.BeatAnswer{Reason: err.Error()})
		return
	}
	p.whileOurs(func() {
		r := p.cache.Get(wid)
		p.cache.WhenKnown(r, func() {
			if !r.Live() {
				answer(schemas.BeatAnswer{Gone: true, Reason: "the workflow is unknown"})
				return
			}
			// What sends the worker home may not be in the history yet, and may never be: it is
			// told after it.
			if a := r.State.Beat(&h, list, p.now()); a.Gone || a.CancelRequested {
				p.afterPending(r, func() { answer(a) })
			} else {
				answer(a)
			}
		}, func() { answer(schemas.BeatAnswer{Reason: damagedError(r).Message}) })
	})
}

func closedError(wid string, s *execution.State) *schemas.Error {
	return schemas.Errorf(schemas.CodeClosed, "workflow %q is closed (%s), as run %s",
		wid, s.Status, s.Run).
		About(wid, s.Run).WithHint("start it again, or name an open workflow")
}

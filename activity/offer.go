package activity

import (
	"context"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nearby"
)

const (
	// offerQueue is the queue that the workers of a list form: an offer comes to one of them.
	offerQueue = "workers"
	// hearOutLimit bounds how long a worker that stops hears the offers that are on their way. What
	// comes later the owner puts on the list.
	hearOutLimit = time.Second
)

// hear takes offers of a list: tasks without a message in the stream, for idle workers (ADR 0023).
// There is no lease on one. Its owner puts it on the list if it is refused or takes long; once its
// start is announced the owner asks whether we are still at it when somebody else is given that
// message.
func (s *term) hear(
	list string, p *natsconn.Puller, begin func(*delivery) bool,
) (natsconn.Subscription, error) {
	t := &acceptor{term: s, list: list, puller: p, start: begin}
	sub, err := s.conn.Subscribe(s.ns.Offer(list), offerQueue, func(m natsconn.Msg) {
		if t.take(m, nil) || m.Reply == "" {
			return
		}
		if err := s.respond(m, []byte("busy")); err != nil {
			s.log.WithField("err", err).
				Debug("an offer cannot be refused; its owner puts it on the list in a second")
		}
	})
	if err == nil {
		s.leave = append(s.leave,
			nearby.On(s.conn).Register(nearby.List{Namespace: s.opts.Namespace, Name: list}, t))
	}
	return sub, err
}

// acceptor takes what is offered of one list.
type acceptor struct {
	*term
	list   string
	puller *natsconn.Puller
	start  func(*delivery) bool
}

// Take implements [nearby.Taker].
func (t *acceptor) Take(activityType string, m natsconn.Msg, e nearby.Errand) bool {
	return t.handlers[activityType] != nil && t.take(m, e)
}

func (t *acceptor) take(m natsconn.Msg, e nearby.Errand) bool {
	if t.closed.Load() {
		return false
	}
	task, ok := t.puller.Admit(m)
	if !ok {
		return false
	}
	if !t.start(&delivery{Task: task, term: t.term, list: t.list, offered: true, errand: e}) {
		task.Release()
		return false
	}
	return true
}

// hearOut ends the hearing of offers.
func (s *term) hearOut(offers []natsconn.Subscription) {
	for _, leave := range s.leave {
		leave()
	}
	ctx, cancel := context.WithTimeout(context.Background(), hearOutLimit)
	defer cancel()
	var ending sync.WaitGroup
	for _, o := range offers {
		ending.Go(func() {
			if o.Drain(ctx) != nil {
				_ = o.Close() // out of time, or out of connection
			}
		})
	}
	ending.Wait()
}

// settleOffer gives an offer back that is not done. If that gets lost, its owner puts it on the
// list, or asks and hears nothing.
func (s *term) settleOffer(d *delivery, how ending) {
	if how == acknowledge || d.task == nil {
		return
	}
	body, ok := s.returnReport(d)
	if !ok {
		return
	}
	s.outbox.Send(d.task.Report, nil, body, func(a natsconn.Ack) {
		if a.Err != nil {
			d.bareLog().WithField("err", a.Err).
				Warn("an offer was not given back; its owner finds out")
		}
	})
}

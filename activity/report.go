package activity

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// headerBudget stays free below the server's limit, as in every message of Drover: the outcome
	// becomes part of a history record.
	headerBudget = 64 << 10
)

// notice reports the start of an attempt that is not over soon.
type notice struct {
	timer *time.Timer

	mu     sync.Mutex
	stop   chan struct{} // both are made when the attempt has taken long: few do
	stored chan bool
}

// announce reports the start of an attempt once it has taken so long, unless the notice was ended
// before.
func (s *term) announce(ctx context.Context, a *attempt) *notice {
	n := &notice{}
	n.timer = time.AfterFunc(s.opts.StartedAfter, func() {
		stop, stored := n.channels()
		stored <- s.publishStart(ctx, stop, a) == nil
	})
	return n
}

func (n *notice) channels() (stop chan struct{}, stored chan bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stop == nil {
		n.stop, n.stored = make(chan struct{}), make(chan bool, 1)
	}
	return n.stop, n.stored
}

// end waits for a report on its way, so that no outcome overtakes it, and tells whether the start
// is stored. It is called once. Without a notice the start is stored.
func (n *notice) end() (started bool) {
	if n == nil {
		return true
	}
	if n.timer.Stop() {
		return false
	}
	stop, stored := n.channels()
	close(stop)
	return <-stored
}

// publishStart reports the start until it is stored, stop is closed or ctx ends.
func (s *term) publishStart(ctx context.Context, stop <-chan struct{}, a *attempt) error {
	r := &schemas.Report{
		Kind: schemas.ReportStarted, Token: a.token, Elapsed: elapsed(a), Offered: a.offered,
	}
	s.origin(r, a.delivery)
	body, err := schemas.Marshal(r)
	if err != nil {
		return err
	}
	return s.publish(ctx, stop, a.delivery, body)
}

// conclude reports an attempt's outcome and settles its task. It ends the announcement of the
// start.
func (s *term) conclude(ctx context.Context, a *attempt, v verdict, news *notice) {
	var err error
	if v.report != nil {
		// before the announcement ends: it may take long, and the service must know of the start
		err = s.spill(ctx, a, v.report)
	}
	started := news.end()
	switch {
	case v.report == nil && v.ending == giveBack:
		a.giveBack()
		return
	case err != nil:
	case v.report != nil:
		if err = s.publishOutcome(ctx, a, v.report, started); a.elsewhere {
			return
		}
	case v.late && !started:
		// Without it the service would wait for a worker, and no limit of the attempt would ever
		// pass.
		within, cancel := a.wanted(ctx)
		err = s.publishStart(within, nil, a)
		cancel()
	}
	s.concluded(a, err)
}

// concluded settles the task of an attempt whose outcome was told, or could not be.
func (s *term) concluded(a *attempt, err error) {
	switch {
	case err == nil:
		a.settle(acknowledge, 0)
	case errors.Is(err, ErrDrained):
		a.giveBack()
	case a.settle(giveBack, againDelay): // unless the end of the worker has
		a.log().WithField("err", err).
			Error("an outcome could not be stored; the task goes back to its list")
	}
}

// publishOutcome reports an outcome until it is stored or ctx ends, unless the delivery ends
// elsewhere. One that is too large becomes a failure that says so.
func (s *term) publishOutcome(
	ctx context.Context, a *attempt, r *schemas.Report, started bool,
) error {
	r.Token, r.Elapsed = a.token, elapsed(a)
	if !a.begun { // what is handed over may overtake an announcement that is in the inbox
		s.origin(r, a.delivery)
	}
	if a.decide != nil && !started && len(r.Result) <= schemas.PayloadThreshold/2 {
		a.elsewhere = true // also if the decider ends this goroutine
		ahead, told := a.decide(r, func() { s.concludeElsewhere(ctx, a, r) })
		if told { // the report is another's
			return nil
		}
		a.elsewhere, r.Ahead = false, ahead
	}
	return s.tellOutcome(ctx, a, r)
}

// concludeElsewhere tells an outcome, and ends its delivery, while the goroutine that did the work
// is kept by a decider that is late.
func (s *term) concludeElsewhere(ctx context.Context, a *attempt, r *schemas.Report) {
	defer s.done(a.delivery)
	s.concluded(a, s.tellOutcome(ctx, a, r))
}

// tellOutcome is publishOutcome after the decision.
func (s *term) tellOutcome(ctx context.Context, a *attempt, r *schemas.Report) error {
	if stored, err := s.reportDirectly(ctx, a.delivery, r); stored || err != nil {
		// what it may take is bounded anyway
		return err
	}
	r.Ahead = nil // the owner asks
	body, err := schemas.Marshal(r)
	if err != nil {
		return err
	}
	ctx, cancel := a.wanted(ctx)
	defer cancel()
	if len(body) <= int(s.conn.MaxPayload())-headerBudget {
		if err = s.publish(ctx, nil, a.delivery, body); !errors.Is(err, natsconn.ErrTooLarge) {
			return err
		}
	}
	shrink(r, len(body))
	a.log().WithField("bytes", len(body)).
		Warn("an outcome is too large for a message; its result or details are left out")
	if body, err = schemas.Marshal(r); err != nil {
		return err
	}
	return s.publish(ctx, nil, a.delivery, body)
}

// shrink leaves the large part of an outcome out. A result cannot be left out: then the activity
// has failed.
func shrink(r *schemas.Report, size int) {
	text := fmt.Sprintf(
		"the outcome has %d bytes, which no message can hold: store what is large elsewhere and return where",
		size)
	r.Details = schemas.Text(text)
	if r.Kind == schemas.ReportSuccess {
		r.Kind, r.Reason, r.Result = schemas.ReportFailed, ReasonTooLarge, nil
	}
}

// publish sends a report until it is stored, stop is closed between two tries, or ctx ends.
// Repeating one whose fate is unknown is right: outcomes are told apart by their token, starts by
// their nonce.
func (s *term) publish(ctx context.Context, stop <-chan struct{}, d *delivery, body []byte) error {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err, over := s.publishOnce(ctx, d, body)
		if over != nil {
			return over
		}
		if err == nil || permanent(err) {
			return err
		}
		if wait == firstRetry {
			d.log().WithField("err", err).Warn("a report was not stored; trying again")
		}
		if !passed(ctx, stop, wait) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// publishOnce is one try of publish; over is why ctx has ended.
func (s *term) publishOnce(ctx context.Context, d *delivery, body []byte) (err, over error) {
	done, _, err := s.conn.Bulk(ctx, len(body), 0)
	if err != nil {
		return nil, context.Cause(ctx)
	}
	stored := make(chan error, 1)
	s.outbox.Send(d.task.Report, nil, body, func(a natsconn.Ack) {
		done(a.Err)
		stored <- a.Err
	})
	select {
	case err := <-stored:
		return err, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// elapsed is how long ago the attempt began. It is never 0, which means "not said".
func elapsed(a *attempt) schemas.Duration {
	return schemas.Duration(max(time.Since(a.info.StartedAt), 1))
}

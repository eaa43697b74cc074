package activity

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

const (
	// askAgain is how long an answer may take before the question is repeated, with the same nonce.
	askAgain = 5 * time.Second
	// askRetry is how soon a question is repeated that was not stored.
	askRetry = 200 * time.Millisecond
)

// permission asks the owner of the workflow whether this delivery may run, and waits for the answer
// as long as it takes: a question that was stored may have been granted, and giving up on it would
// waste the one attempt of an activity that must not run twice. If the answer is no, or ctx ends,
// the delivery is settled and permission returns false.
//
// With straight the owner is asked without the inbox first. It says yes, after the record of the
// start, or leaves everything else to that way.
func (s *term) permission(ctx context.Context, d *delivery, straight bool) bool {
	report := &schemas.Report{Kind: schemas.ReportBegin, Token: d.task.Token}
	s.origin(report, d)
	if straight {
		// If the answer is lost the start may be in the history: the question by way of the inbox
		// has the same nonce, and finds it there.
		if yes, err := s.reportDirectly(ctx, d, report); err == nil && yes {
			d.begun = true
			return true
		}
	}
	report.ReplyTo = s.inbox
	body, err := schemas.Marshal(report)
	if err != nil {
		d.log().WithField("err", err).Error("a question cannot be encoded")
		d.settle(giveBack, againDelay)
		return false
	}
	answers := make(chan schemas.Permission, 1)
	s.mu.Lock()
	s.asking[d.nonce] = answers
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.asking, d.nonce)
		s.mu.Unlock()
	}()
	p, ok := s.question(ctx, d, body, answers)
	switch {
	case !ok:
		d.giveBack()
		return false
	case p.Leave:
		d.log().WithField("reason", p.Reason).Debug("the task is left to its lease")
		d.forget()
		return false
	case !p.Go:
		d.log().WithField("reason", p.Reason).Debug("the task is dropped")
		d.settle(acknowledge, 0)
		return false
	}
	d.begun = true
	if p.Token != "" && p.Token != d.token {
		s.take(d, p.Token)
	}
	if p.Attempt > 0 {
		d.number = p.Attempt
	}
	if len(p.HeartbeatDetails) > 0 {
		d.resume = p.HeartbeatDetails
	}
	return true
}

// question repeats the question until it is answered or ctx ends.
func (s *term) question(
	ctx context.Context, d *delivery, body []byte, answers <-chan schemas.Permission,
) (p schemas.Permission, ok bool) {
	timer := time.NewTimer(askAgain)
	defer timer.Stop()
	for level := logrus.WarnLevel; ctx.Err() == nil; {
		// the worker may have ended while its owner was asked
		stored := make(chan error, 1)
		s.outbox.Send(d.task.Report, nil, body, func(a natsconn.Ack) { stored <- a.Err })
		timer.Reset(askAgain)
		for waiting := true; waiting; {
			select {
			case p = <-answers:
				return p, true
			case err := <-stored:
				if err != nil {
					d.log().WithField("err", err).Log(level,
						"a question was not stored; asking again")
					// during an election each task in hand asks some six times a second
					level = logrus.DebugLevel
					timer.Reset(askRetry)
				}
			case <-timer.C:
				waiting = false
			case <-ctx.Done():
				return p, false
			}
		}
	}
	return p, false
}

// permitted takes an answer. Those to questions that were answered before are dropped.
func (s *term) permitted(m natsconn.Msg) {
	var p schemas.Permission
	if err := schemas.Unmarshal(m.Data, &p); err != nil {
		s.log.WithField("err", err).
			Warn("an answer that cannot be decoded; the question is asked again")
		return
	}
	s.mu.Lock()
	answers := s.asking[p.Nonce]
	s.mu.Unlock()
	select {
	case answers <- p: // never, if nobody asks
	default:
	}
}

// origin writes into a report which delivery it is about.
func (s *term) origin(r *schemas.Report, d *delivery) {
	r.Identity, r.TaskSequence, r.Redelivered, r.Nonce = s.opts.Identity, d.Seq, d.Delivered > 1, d.nonce
}

package activity

import (
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// begins makes an attempt known to those who may want to end it. It ends with its delivery.
func (s *term) begins(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[a.delivery] = a
}

// control takes what the broker tells this worker at once. It is a hint that may be lost: the
// answer to a heartbeat says the same. Workers with one identity all hear it, and those that do not
// run the attempt do nothing.
func (s *term) control(m natsconn.Msg) {
	var c schemas.Control
	if err := schemas.Unmarshal(m.Data, &c); err != nil {
		s.log.WithField("err", err).Warn("a message on the control subject that cannot be decoded")
		return
	}
	switch c.Kind {
	case schemas.ControlCancel:
		s.cancel(&c)
	case schemas.ControlHolds:
		s.holds(&c, m)
	case schemas.ControlDrain:
		s.toldToDrain(&c, m)
	default:
		s.log.Debugf("a message of kind %q on the control subject", c.Kind)
	}
}

// drainRequest is an operator's request that the worker drains.
type drainRequest struct {
	to    chan time.Duration // the limit of the drain, or 0
	given atomic.Bool        // to has had one
	limit time.Duration      // of the drain; set before the context of run ends
}

// toldToDrain begins the drain as the end of Run's context does, and says so. The first word
// counts: told again it only says the same. The answer goes first: a worker with nothing in hand is
// gone a moment after the word.
func (s *term) toldToDrain(c *schemas.Control, m natsconn.Msg) {
	answer := schemas.ControlAnswer{
		V: schemas.Version, Node: s.opts.Identity, Status: schemas.NodeDraining,
	}
	if c.Timeout < 0 {
		answer.Status, answer.Error = schemas.NodeReady, schemas.Errorf(schemas.CodeInvalid,
			"timeout is %v: want more than 0, or 0 for %v", c.Timeout, s.opts.DrainTimeout).
			InField("timeout")
	}
	s.tell(m, &answer)
	if answer.Error == nil && s.drainAsked.given.CompareAndSwap(false, true) {
		// who waits for its end tells it again and again
		s.log.WithField("reason", c.Reason).Info("the worker was told to drain")
		s.drainAsked.to <- c.Timeout.Std() // there is room for one
	}
}

func (s *term) tell(m natsconn.Msg, answer *schemas.ControlAnswer) {
	if m.Reply == "" {
		return
	}
	body, err := schemas.MarshalJSON(answer)
	if err == nil {
		err = s.respond(m, body)
	}
	if err != nil {
		s.log.WithField("err", err).Debug("who has told the worker to drain cannot be answered")
	}
}

// cancel ends the context of an attempt.
func (s *term) cancel(c *schemas.Control) {
	for _, a := range s.attempts(c.Token) {
		a.beats.told(c)
	}
}

// attempts are those with a token that run here: more than one if a copy of the task runs here too.
func (s *term) attempts(token string) (meant []*attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.live {
		if a != nil && a.token == token {
			meant = append(meant, a)
		}
	}
	return meant
}

// holds answers for an attempt that runs here. Others of this identity may run it, so nobody says
// no.
func (s *term) holds(c *schemas.Control, m natsconn.Msg) {
	if len(s.attempts(c.Token)) == 0 || m.Reply == "" {
		return
	}
	body, err := schemas.MarshalJSON(
		&schemas.ControlAnswer{V: schemas.Version, Node: s.opts.Identity, Holds: true})
	if err == nil {
		err = s.respond(m, body)
	}
	if err != nil {
		s.log.WithField("err", err).
			Debug("an owner that asks for an attempt cannot be answered; it asks again")
	}
}

package activity

import (
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

// begins makes an attempt known to those who may want to end it. It ends with its delivery.
func (s *spell) begins(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[a.delivery] = a
}

// control takes what the broker tells this worker at once. It is a hint that may be lost: the answer to a heartbeat says
// the same. Workers with one identity all hear it, and those that do not run the attempt do nothing.
func (s *spell) control(m post.Msg) {
	var c schemas.Control
	if err := schemas.Unmarshal(m.Data, &c); err != nil {
		s.log.WithField("err", err).Warn("a message on the control subject that cannot be decoded")
		return
	}
	if c.Kind != schemas.ControlCancel {
		s.log.Debugf("a message of kind %q on the control subject", c.Kind)
		return
	}
	var meant []*attempt // more than one if a copy of the task runs here too
	s.mu.Lock()
	for _, a := range s.live {
		if a != nil && a.token == c.Token {
			meant = append(meant, a)
		}
	}
	s.mu.Unlock()
	for _, a := range meant {
		a.beats.requested(c.Reason)
	}
}

package decider

import (
	"sync"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// lives are the subjects by which owners learn that the worker is gone: they call there when an
// answer takes long, and the server tells them if nobody listens (ADR 0036). So these end last,
// after the last answer; those that bring tasks end when the worker stops to take any.
type lives struct {
	mu sync.Mutex
	// by type; they stay when a type is no longer served, since its last tasks may be at work
	subs map[string]natsconn.Subscription
}

// live listens to a type's subject for the rest of the shift.
func (s *session) live(typ string) error {
	s.lives.mu.Lock()
	defer s.lives.mu.Unlock()
	if s.lives.subs[typ] != nil {
		return nil
	}
	// that it was brought is the answer
	sub, err := s.conn.Subscribe(s.ns.DecideAlive(typ, s.sticky), "", func(natsconn.Msg) {})
	if err != nil {
		return err
	}
	if s.lives.subs == nil {
		s.lives.subs = make(map[string]natsconn.Subscription)
	}
	s.lives.subs[typ] = sub
	return nil
}

// leave tells the owners that every task was answered, so that they do not ask others when nobody
// listens any more.
func (s *session) leave() {
	s.lives.mu.Lock()
	defer s.lives.mu.Unlock()
	for typ := range s.lives.subs {
		body, err := schemas.MarshalJSON(
			&schemas.Announcement{
				V:      schemas.Version,
				Type:   typ,
				Worker: s.opts.Identity,
				Left:   s.sticky,
			},
		)
		if err == nil {
			err = s.conn.Publish(s.ns.Announce(typ), nil, body)
		}
		if err != nil {
			s.log.WithField("err", err).
				Debug("the owners do not learn that this worker stops; others may be asked twice")
		}
	}
}

func (l *lives) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sub := range l.subs {
		_ = sub.Close() // fails only with the connection
	}
	l.subs = nil
}

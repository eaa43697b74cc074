package listen

import (
	"sync"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// alive has the subjects by which owners learn that the worker is gone: they call there when an
// answer takes long, and the server tells them if nobody listens (ADR 0036). So these end last,
// after the last answer; those that bring tasks end when the worker stops to take any.
type alive struct {
	mu sync.Mutex
	// by type; they stay when a type is no longer served, since its last tasks may be at work
	subs map[string]natsconn.Subscription
}

// live listens to a type's subject for the rest of the Run.
func (l *Listener) live(typ string) error {
	l.alive.mu.Lock()
	defer l.alive.mu.Unlock()
	if l.alive.subs[typ] != nil {
		return nil
	}
	// that it was brought is the answer
	sub, err := l.Conn.Subscribe(l.Namespace.DecideAlive(typ, l.Sticky), "", func(natsconn.Msg) {})
	if err != nil {
		return err
	}
	if l.alive.subs == nil {
		l.alive.subs = make(map[string]natsconn.Subscription)
	}
	l.alive.subs[typ] = sub
	return nil
}

// Leave tells the owners that every task was answered, so that they do not ask others when nobody
// listens any more.
func (l *Listener) Leave() {
	l.alive.mu.Lock()
	defer l.alive.mu.Unlock()
	for typ := range l.alive.subs {
		body, err := schemas.MarshalJSON(&schemas.Announcement{
			V:      schemas.Version,
			Type:   typ,
			Worker: l.Identity,
			Left:   l.Sticky,
		})
		if err == nil {
			err = l.Conn.Publish(l.Namespace.Announce(typ), nil, body)
		}
		if err != nil {
			l.Log.WithField("err", err).
				Debug("the owners do not learn that this worker stops; others may be asked twice")
		}
	}
}

func (a *alive) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, sub := range a.subs {
		_ = sub.Close() // fails only with the connection
	}
	a.subs = nil
}

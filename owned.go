package drover

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
)

// ownedPause is how long after a broker has taken a partition over, or the connection is back,
// calls ask again: the partitions of a broker that died are taken over one after the other, and not
// all clients need to ask at the same moment.
const ownedPause = 50 * time.Millisecond

// errOwned ends a try that is to be made again at once.
var errOwned = errors.New("a partition has another owner, or the connection was lost")

// tries are those that wait for an answer now. A broker that dies with a request in hand owes its
// answer for ever, and NATS tells nobody: so whoever takes one of its partitions over says so, and
// every call asks again with the same bytes, which is harmless (P-5). Of which partition a request
// is only brokers know, so it is all of them. Answers that were on their way are lost with a
// connection, too, and who was not connected has not heard that word: so it is the same when the
// connection is back.
//
// Nobody relies on it: without that word, or the right to hear it, a try ends by its own time as
// before.
type tries struct {
	mu     sync.Mutex
	sub    natsconn.Subscription // nil before the first try
	unhook func()                // the same; ends what is done after a reconnect
	closed bool
	open   map[*try]struct{}
	round  *time.Timer // until the next one; nil while nobody has said anything
}

type try struct {
	cancel context.CancelFunc
	again  atomic.Bool // set before it is canceled
}

// owned is called when a partition has a new owner, and when the connection is back.
func (s *tries) owned() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.round != nil || s.closed || len(s.open) == 0 {
		return
	}
	s.round = time.AfterFunc(ownedPause*3/4+rand.N(ownedPause/2), s.askAgain)
}

func (s *tries) askAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round = nil
	for t := range s.open {
		t.again.Store(true)
		t.cancel()
	}
}

// begin registers a try, which cancel ends if it is to be made again. The first one subscribes.
func (s *tries) begin(c *Client, cancel context.CancelFunc) *try {
	t := &try{cancel: cancel}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sub == nil && !s.closed {
		c.conn.Optional(c.namespace.AllOwned())
		// An error means that the connection is closed; the call finds that out for itself.
		s.sub, _ = c.conn.Subscribe(c.namespace.AllOwned(), "", func(natsconn.Msg) { s.owned() })
		if s.unhook == nil {
			s.unhook = c.conn.OnReconnect(s.owned)
		}
	}
	if s.open == nil {
		s.open = make(map[*try]struct{})
	}
	s.open[t] = struct{}{}
	return t
}

func (s *tries) end(t *try) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, t)
}

// close ends the subscription and the hook, as the connection may be another's. Calls that are
// under way go on.
func (s *tries) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.sub != nil {
		_ = s.sub.Close() // it fails only when the connection is closed already
	}
	if s.unhook != nil {
		s.unhook()
	}
	if s.round != nil {
		s.round.Stop()
	}
}

package activity

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// The owner of a workflow that dies takes with it what it was told of offers and outcomes, and whoever owns the workflow next repeats its
// tasks: some that are in hand, and some whose outcome is on its way to the inbox because the answer was lost. Who gets such a task asks the
// owner first, which reads the outcome before the question (ADR 0049). A redelivery asks as well, but this is the first delivery of another
// message.
//
// Two things tell of it: the word of the next owner, and a connection that is lost, since the server may have died that the owner was in.
// Without them a task that may run twice is done twice, as ever.

const (
	// againFor is how long a task that was scheduled before such a moment is asked for.
	againFor = 10 * time.Second
	// twinDelay is when another message of a task comes back that is in hand already. By then it has mostly ended, and who gets it asks.
	twinDelay = time.Second
	// everyPartition stands for all of them.
	everyPartition = -1
)

// breach is when an owner may have died, and by the server's clock, which is not behind that.
type breach struct{ at, server time.Time }

// breaches are the last ones. The zero value has none.
type breaches struct {
	mu    sync.Mutex                     // for note
	known atomic.Pointer[map[int]breach] // by partition; never changed
}

func (b *breaches) note(p int, at breach) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := map[int]breach{p: at}
	if old := b.known.Load(); old != nil {
		next = maps.Clone(*old)
		next[p] = at
	}
	b.known.Store(&next)
}

// concern tells whether a task may be one that was given to somebody before one of them.
func (b *breaches) concern(t *schemas.ActivityTask) bool {
	known := b.known.Load()
	if known == nil {
		return false
	}
	p, _, _, err := subject.ParseBeat(t.Beat)
	if err != nil {
		return false
	}
	for _, of := range []int{p, everyPartition} {
		if at, ok := (*known)[of]; ok && time.Since(at.at) < againFor && t.ScheduledAt.Time().Before(at.server) {
			return true
		}
	}
	return false
}

// watch notes when an owner may have died, until leave is called.
func (s *spell) watch() (leave func(), err error) {
	heard, err := s.conn.Subscribe(s.ns.AllOwned(), "", s.owned)
	if err != nil {
		return nil, err
	}
	unhook := s.conn.OnReconnect(func() { s.breaches.note(everyPartition, s.breachNow()) })
	return func() {
		unhook()
		_ = heard.Close() // it fails only when the connection is closed, and with it the subscription
	}, nil
}

// owned hears that a partition has another owner. What was handed to the one before has no answer.
func (s *spell) owned(m post.Msg) {
	p, err := subject.ParseOwned(m.Subject)
	if err != nil {
		return
	}
	s.breaches.note(p, s.breachNow())
	s.owners.GiveUp(strings.TrimSuffix(s.ns.AllBeats(p), ">"))
}

func (s *spell) breachNow() breach {
	now := time.Now()
	return breach{now, s.clock.Now(now)}
}

// twin is the delivery by which the same attempt is in hand already; nil if it is not.
func (s *spell) twin(d *delivery) *delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, a := range s.live {
		if other != d && a != nil && a.token == d.token {
			return other
		}
	}
	return nil
}

// leftToTwin ends a first delivery whose attempt is in hand by another one, and tells whether it is. A message stays on its list, in case that
// attempt comes to nothing.
//
// The same message once more, from a server that was killed and counts deliveries anew, must not come back as a redelivery: that would say that
// the attempt in hand is lost (P-7). It is left to the lease, which that one extends and ends.
func (s *spell) leftToTwin(d *delivery) bool {
	if d.Delivered > 1 {
		return false
	}
	twin := s.twin(d)
	if twin == nil {
		return false
	}
	d.log().Debug("the task is in hand already")
	if d.offered || !twin.offered && twin.Seq == d.Seq {
		d.forget()
	} else {
		d.settle(handBack, twinDelay)
	}
	return true
}

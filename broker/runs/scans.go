package runs

import (
	"sync"
	"time"

	"github.com/droverhq/drover/schemas"
)

const (
	// mostScans is how many requests that read all of something are served at a time.
	mostScans = 4
	// mostWaiting bounds those that wait for their turn. Whoever asks above it is told to ask
	// again.
	mostWaiting = 128
	// longestTurn is how long one may wait: its asker has given up by then, and asks anew.
	longestTurn = 5 * time.Second
)

// Scans gives turns to requests that read all of a stream or a bucket, or ask about each stream:
// lists, counts, dead letters, locks, task lists, types, audits (E13). A few are served at a time.
// The others wait in queues, one for each asker, which are served in turn; so somebody who asks a
// thousand times at once delays others by no more than what is being served. When too many wait,
// the longest queue gives way.
type Scans struct {
	mu      sync.Mutex
	serving int
	waiting int
	queues  map[string][]*turn
	askers  []string // those with a queue, the next one first
}

// turn is a request that waits. serve is called on a goroutine of its own, and calls done once.
type turn struct {
	serve  func(done func())
	refuse func()
	since  time.Time
}

// Enter serves a request in its turn, or refuses it.
func (s *Scans) Enter(asker string, serve func(done func()), refuse func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &turn{serve: serve, refuse: refuse, since: time.Now()}
	if s.serving < mostScans {
		s.begin(t)
		return
	}
	if s.waiting >= mostWaiting && !s.giveWay(len(s.queues[asker])) {
		go refuse()
		return
	}
	if s.queues == nil {
		s.queues = map[string][]*turn{}
	}
	if len(s.queues[asker]) == 0 {
		s.askers = append(s.askers, asker)
	}
	s.queues[asker] = append(s.queues[asker], t)
	s.waiting++
}

// giveWay refuses the last of the longest queue, if that is longer than mine would be.
func (s *Scans) giveWay(mine int) bool {
	longest := ""
	for asker, q := range s.queues {
		if len(q) > len(s.queues[longest]) {
			longest = asker
		}
	}
	q := s.queues[longest]
	if len(q) <= mine+1 {
		return false
	}
	last := len(q) - 1
	go q[last].refuse()
	s.queues[longest] = q[:last]
	s.waiting--
	return true
}

// begin serves a request. The caller holds mu.
func (s *Scans) begin(t *turn) {
	s.serving++
	go t.serve(sync.OnceFunc(s.next))
}

// next gives the turn that is over to whoever is next.
func (s *Scans) next() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving--
	for s.serving < mostScans && len(s.askers) > 0 {
		asker := s.askers[0]
		s.askers = s.askers[1:]
		q := s.queues[asker]
		t := q[0]
		s.waiting--
		if q = q[1:]; len(q) > 0 {
			s.queues[asker] = q
			s.askers = append(s.askers, asker)
		} else {
			delete(s.queues, asker)
		}
		if time.Since(t.since) > longestTurn {
			go t.refuse()
			continue
		}
		s.begin(t)
	}
}

// TooMany refuses a request that cannot wait for its turn.
func TooMany() *schemas.Error {
	return schemas.Errorf(schemas.CodeUnavailable,
		"too many requests that read everything wait here").
		WithHint("ask again in a moment, and for less at a time; %d are served at once", mostScans)
}

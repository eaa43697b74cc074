package activity

import (
	"sync"
	"time"
)

// A task of a type that is not registered here is for another worker of the list, as in a rolling
// update. The server gives it to those that wait in turn: each has one request there. So a worker
// passes the task on at once, and it comes to the one that knows its type before it comes back. If
// it does come back, none of those that wait does, and it rests on the list for a while. A worker
// that has come, or has become idle, takes it then.

const (
	firstStrangerDelay = 250 * time.Millisecond
	lastStrangerDelay  = 5 * time.Second
	// strangerRound is in how long a task comes back that nobody has let rest: well below the first
	// delay. Where it takes longer, on a busy machine, it goes around once more.
	strangerRound = 100 * time.Millisecond
	// mostAgain is how many tasks a second are passed on that have been here before. With more of
	// them a round takes longer than strangerRound, and they would never rest.
	mostAgain = 100
	// mostStrangers bounds the tasks that are remembered. One that is forgotten goes around once
	// more.
	mostStrangers = 4096
)

// strangerAt is a task of a type that is not registered, on its list.
type strangerAt struct {
	list string
	seq  uint64
}

// met is when such a task was here last, and how often it was let rest here.
type met struct {
	at    time.Time
	rests int
}

// strangers are the tasks of types that are not registered that were here. The zero value is none.
type strangers struct {
	mu   sync.Mutex
	seen map[strangerAt]met
	// the second in which so many of them were passed on again
	from  time.Time
	again int
}

// stranger gives back a task of a type that is not registered here.
func (s *term) stranger(d *delivery) {
	if s.firstSight(d.task.Type) {
		d.log().Warn(
			"no function is registered for this type of activity; its tasks go back to the list for other workers")
	}
	d.settle(giveBack, s.strangers.delay(strangerAt{d.list, d.Seq}, time.Now()))
}

// delay is for how long a task rests that is given back now.
func (s *strangers) delay(t strangerAt, now time.Time) (delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, known := s.seen[t]
	if known && (now.Sub(m.at) < strangerRound || !s.passesAgain(now)) {
		delay = min(firstStrangerDelay<<min(m.rests, 16), lastStrangerDelay)
		m.rests++
	}
	if s.seen == nil || !known && len(s.seen) >= mostStrangers {
		s.seen = make(map[strangerAt]met)
	}
	m.at = now
	s.seen[t] = m
	return delay
}

// passesAgain counts a task that is passed on again, and tells whether it may be. The caller holds
// mu.
func (s *strangers) passesAgain(now time.Time) bool {
	if now.Sub(s.from) >= time.Second {
		s.from, s.again = now, 0
	}
	s.again++
	return s.again <= mostAgain
}

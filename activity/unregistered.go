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
	firstUnregisteredDelay = 250 * time.Millisecond
	lastUnregisteredDelay  = 5 * time.Second
	// unregisteredRound is in how long a task comes back that nobody has let rest: well below the
	// first delay. Where it takes longer, on a busy machine, it goes around once more.
	unregisteredRound = 100 * time.Millisecond
	// mostAgain is how many tasks a second are passed on that have been here before. With more of
	// them a round takes longer than unregisteredRound, and they would never rest.
	mostAgain = 100
	// mostUnregistered bounds the tasks that are remembered. One that is forgotten goes around once
	// more.
	mostUnregistered = 4096
)

// taskPlace is a task of a type that is not registered, on its list.
type taskPlace struct {
	list string
	seq  uint64
}

// lastSeen is when such a task was here last, and how often it was let rest here.
type lastSeen struct {
	at    time.Time
	rests int
}

// unregisteredTasks are the tasks of types that are not registered that were here. The zero value
// is none.
type unregisteredTasks struct {
	mu   sync.Mutex
	seen map[taskPlace]lastSeen
	// the second in which so many of them were passed on again
	from  time.Time
	again int
}

// returnUnregistered gives back a task of a type that is not registered here.
func (s *term) returnUnregistered(d *delivery) {
	if s.firstSight(d.task.Type) {
		d.log().Warn(
			"this worker has no function for this type of activity: its tasks go back to the list for other workers; " +
				"if none has one, implement it here, or run a worker that does")
	}
	d.settle(giveBack, s.unregistered.delay(taskPlace{d.list, d.Seq}, time.Now()))
}

// delay is for how long a task rests that is given back now.
func (s *unregisteredTasks) delay(t taskPlace, now time.Time) (delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, known := s.seen[t]
	if known && (now.Sub(m.at) < unregisteredRound || !s.passesAgain(now)) {
		delay = min(firstUnregisteredDelay<<min(m.rests, 16), lastUnregisteredDelay)
		m.rests++
	}
	if s.seen == nil || !known && len(s.seen) >= mostUnregistered {
		s.seen = make(map[taskPlace]lastSeen)
	}
	m.at = now
	s.seen[t] = m
	return delay
}

// passesAgain counts a task that is passed on again, and tells whether it may be. The caller holds
// mu.
func (s *unregisteredTasks) passesAgain(now time.Time) bool {
	if now.Sub(s.from) >= time.Second {
		s.from, s.again = now, 0
	}
	s.again++
	return s.again <= mostAgain
}

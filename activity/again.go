package activity

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/clock"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// The owner of a workflow that dies takes with it what it was told of offers and outcomes, and
// whoever owns the workflow next repeats its tasks: some that are in hand, and some whose outcome
// is on its way to the inbox because the answer was lost. Who gets such a task asks the owner
// first, which reads the outcome before the question (ADR 0049). A redelivery asks as well, but
// this is the first delivery of another message.
//
// Two things tell of it: the word of the next owner, and a connection that is lost, since the
// server may have died that the owner was in. Without them a task that may run twice may be done
// twice, as ever. The next owner after one that leaves in good order says nothing, and that one
// puts what it has offered on its list, to be asked for. So a worker takes no offer of what it has
// in hand, and asks for it when that is over.

const (
	// againFor is how long a task that was scheduled before such a moment is asked for.
	againFor = 10 * time.Second
	// duplicateDelay is when another message of a task comes back that is in hand already. By then
	// it has mostly ended, and who gets it asks.
	duplicateDelay = time.Second
	// everyPartition stands for all of them.
	everyPartition = -1
)

// ownerChange is when an owner may have died, and by the server's clock, which is not after that.
type ownerChange struct{ at, server time.Time }

// ownerChanges are the last ones. The zero value has none.
type ownerChanges struct {
	mu    sync.Mutex                          // for note
	known atomic.Pointer[map[int]ownerChange] // by partition; never changed
}

func (b *ownerChanges) note(p int, at ownerChange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := map[int]ownerChange{p: at}
	if old := b.known.Load(); old != nil {
		next = maps.Clone(*old)
		next[p] = at
	}
	b.known.Store(&next)
}

// concern tells whether a task may be one that was given to somebody before one of them.
func (b *ownerChanges) concern(t *schemas.ActivityTask) bool {
	known := b.known.Load()
	if known == nil {
		return false
	}
	p, _, _, err := subject.ParseBeat(t.Beat)
	if err != nil {
		return false
	}
	for _, of := range []int{p, everyPartition} {
		if at, ok := (*known)[of]; ok && time.Since(at.at) < againFor &&
			t.ScheduledAt.Time().Before(at.server) {
			return true
		}
	}
	return false
}

// stale tells whether an offer has lain here until its owner gave it up, for a worker that stood
// still does not know it. What has happened meanwhile, also that the run has ended and its locks
// went on, the owner knows (ADR 0049). If the machine stood still as well, pace tells.
//
// The clock learns from an offer that is not. Else one that has lain for longer than it remembers
// would be all that it has, and the next one be judged by it.
func (s *term) stale(d *delivery, now time.Time) bool {
	if !d.offered {
		return false
	}
	if s.clock.Now(now).Sub(max(d.task.ScheduledAt, d.task.DispatchedAt).Time()) >
		schemas.OfferPatience {
		return true
	}
	s.learn(d, now)
	return false
}

// learn has the clock know that the server's was not after the schedule of a task.
func (s *term) learn(d *delivery, now time.Time) {
	s.clock.Observe(d.task.ScheduledAt.Time(), now)
}

// suspension tells of a machine that was suspended. The estimate of the server's clock lags then
// and calls no offer stale; the wall clock is ahead by that time from then on.
type suspension struct {
	clock.Pace
	ahead atomic.Int64 // by how much the wall clock was ahead when it was last asked
}

// wasSuspended notes whether this worker did with its machine. Then what was given to it before is
// asked for, as after the death of its owner. It may also be that somebody has set the clock: that
// costs the same questions.
func (s *term) wasSuspended(now time.Time) {
	ahead := s.suspension.Ahead(now)
	if lost := ahead - time.Duration(s.suspension.ahead.Load()); lost > schemas.OfferPatience {
		s.ownerChanges.note(everyPartition, ownerChange{now, s.clock.Now(now).Add(lost)})
	}
	s.suspension.ahead.Store(int64(ahead)) // after the note, or another goroutine would miss it
}

// watch notes when an owner may have died, until leave is called.
func (s *term) watch() (leave func(), err error) {
	s.conn.Optional(s.ns.AllOwned())
	heard, err := s.conn.Subscribe(s.ns.AllOwned(), "", s.owned)
	if err != nil {
		return nil, err
	}
	unhook := s.conn.OnReconnect(func() { s.ownerChanges.note(everyPartition, s.ownerChangeNow()) })
	return func() {
		unhook()
		// it fails only when the connection is closed, and with it the subscription
		_ = heard.Close()
	}, nil
}

// owned hears that a partition has another owner. What was handed to the one before has no answer.
func (s *term) owned(m natsconn.Msg) {
	p, err := subject.ParseOwned(m.Subject)
	if err != nil {
		return
	}
	s.ownerChanges.note(p, s.ownerChangeNow())
	s.owners.GiveUp(strings.TrimSuffix(s.ns.AllOutcomes(p), ">"))
}

func (s *term) ownerChangeNow() ownerChange {
	now := time.Now()
	return ownerChange{now, s.clock.Now(now)}
}

// take notes that a delivery is in hand under its token, from before it is asked for until it is
// done, and tells whether another one of its attempt is. An offer and the copy of it that its owner
// has put on the list come to two goroutines: whichever takes it second finds the other.
//
// From here on drain may give the delivery back, from a goroutine of its own: so what that looks at
// is set before, or with mu held.
func (s *term) take(d *delivery, token string) (duplicate bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letGo(d)
	d.token, d.taken = token, token
	s.running[d.taken]++
	return s.running[d.taken] > 1
}

// letGo ends what take has begun, if it has. The caller holds mu.
func (s *term) letGo(d *delivery) {
	if d.taken == "" {
		return
	}
	if s.running[d.taken]--; s.running[d.taken] == 0 {
		delete(s.running, d.taken)
	}
	d.taken = ""
}

// sameMessage tells whether the same attempt is in hand by the same message of its list.
func (s *term) sameMessage(d *delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.live {
		if other != d && !other.offered && other.Seq == d.Seq && other.taken == d.taken {
			return true
		}
	}
	return false
}

// leaveToDuplicate ends a first delivery whose attempt is in hand by another one. A message stays
// on its list, in case that attempt comes to nothing; what is offered is on it already, or comes
// there if nobody takes it.
//
// The same message once more, from a server that was killed and counts deliveries anew, must not
// come back as a redelivery: that would say that the attempt in hand is lost (P-7). It is left to
// the lease, which that one extends and ends.
func (s *term) leaveToDuplicate(d *delivery) {
	d.log().Debug("the task is in hand already")
	if d.offered || s.sameMessage(d) {
		d.forget()
	} else {
		d.settle(giveBack, duplicateDelay)
	}
}

package schedules

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/clock"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// atOnce bounds the starts that are under way. Owners write those in one go that come together.
	atOnce = 1024
	// The server's clock is asked often at first, to find a quick answer, then now and then.
	firstLook = 500 * time.Millisecond
	lastLook  = 30 * time.Second
	lookLimit = 5 * time.Second
	// longestWait is how long nobody looks at the clock.
	longestWait = time.Hour
)

// Scheduler fires the schedules of a namespace. It is made by [New].
type Scheduler struct {
	o      Options
	bucket bucket
	engine engine
	log    logrus.FieldLogger
	note   func(context.Context, ops.Operation)
	serve  func(context.Context, []service.Verb) (stop func(), err error)

	settledMu sync.Mutex
	settled   chan struct{} // see Settled
}

// Settled is closed once every slot that an earlier master was starting is settled, so that what is
// purged from then on was not being started. It is that of the [Scheduler.Run] that is under way,
// or else of the next.
func (s *Scheduler) Settled() <-chan struct{} {
	s.settledMu.Lock()
	defer s.settledMu.Unlock()
	return s.settled
}

// Run fires schedules, and answers the verbs about them, until ctx ends; it returns nil then. It
// returns an error if it could not begin.
func (s *Scheduler) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	t := &turn{
		Scheduler: s, ctx: ctx, entries: map[string]*entry{}, wake: make(chan struct{}, 1),
		starts: make(chan struct{}, atOnce), settled: s.Settled(),
	}
	defer func() {
		cancel()
		t.work.Wait()
		s.settledMu.Lock()
		defer s.settledMu.Unlock()
		select {
		case <-s.settled:
			s.settled = make(chan struct{}) // for the next
		default:
		}
	}()
	if err := t.begin(); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("schedules: %w", err)
	}
	defer t.stopFollowing()
	stop, err := s.serve(ctx, t.verbs())
	if err != nil {
		return fmt.Errorf("schedules: %w", err)
	}
	defer stop()
	t.loop()
	return nil
}

// turn is one [Scheduler.Run]: the time of one master.
type turn struct {
	*Scheduler
	ctx           context.Context
	work          sync.WaitGroup // all goroutines of it
	clock         clock.Server
	wake          chan struct{} // the head of the heap or the clock has changed
	starts        chan struct{} // holds one for each start that is under way
	stopFollowing func()

	mu        sync.Mutex // over what follows, and over nothing that waits
	entries   map[string]*entry
	waiting   dueHeap
	unsettled int // slots that an earlier master was starting; -1 until they are counted
	settled   <-chan struct{}
}

// begin asks for the time, and reads all that there is.
func (t *turn) begin() error {
	if err := t.lookAtClock(); err != nil {
		return err
	}
	t.work.Go(t.watchClock)
	states := map[string]stored{}
	err := t.bucket.States(t.ctx, func(key string, value []byte, rev uint64) {
		if id, isState, ok := idOf(key); ok && isState {
			states[id] = stored{value, rev}
		}
	})
	if err != nil {
		return err
	}
	t.unsettled = -1
	var reading sync.Mutex // over states: fn is called before and after they are all read
	present, stop, err := t.bucket.Follow(t.ctx,
		func(key string, value []byte, rev uint64, deleted bool) {
			id, isState, ok := idOf(key)
			if !ok {
				t.log.WithField("key", key).Warn(
					"a key of the bucket of schedules is none of a schedule: it is passed over")
				return
			}
			if isState {
				t.counted(id, rev)
				return
			}
			reading.Lock()
			state, known := states[id]
			reading.Unlock()
			t.heard(id, value, rev, deleted, state, known)
		})
	if err != nil {
		return err
	}
	t.stopFollowing = stop
	select {
	case <-present:
	case <-t.ctx.Done():
		stop()
		return t.ctx.Err()
	}
	reading.Lock()
	left := states
	states = map[string]stored{}
	reading.Unlock()
	t.dropOrphans(left)
	t.count()
	return nil
}

// stored is a value of the bucket.
type stored struct {
	value []byte
	rev   uint64
}

// dropOrphans deletes the states of schedules that are deleted.
func (t *turn) dropOrphans(states map[string]stored) {
	for id, s := range states {
		if t.entry(id) == nil {
			if err := t.bucket.Delete(t.ctx, stateKey(id), s.rev); err != nil &&
				t.ctx.Err() == nil {
				t.log.WithField("err", err).WithField("schedule", id).
					Debug("the state of a schedule that was deleted cannot be deleted")
			}
		}
	}
}

// count finds how many slots an earlier master was starting.
func (t *turn) count() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unsettled = 0
	for _, e := range t.entries {
		if e.unsettled {
			t.unsettled++
		}
	}
	t.tellSettled()
}

// isSettled notes that it is known what became of the slot that an earlier master was starting.
func (t *turn) isSettled(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !e.unsettled {
		return
	}
	e.unsettled = false
	if t.unsettled > 0 {
		t.unsettled--
		t.tellSettled()
	}
}

// tellSettled is called with mu.
func (t *turn) tellSettled() {
	if t.unsettled != 0 {
		return
	}
	t.settledMu.Lock()
	defer t.settledMu.Unlock()
	if t.Scheduler.settled == t.settled {
		select {
		case <-t.settled:
		default:
			close(t.Scheduler.settled)
		}
	}
}

// loop serves each schedule when it is due.
func (t *turn) loop() {
	for {
		next := t.serveDue()
		wait := longestWait
		if !next.IsZero() {
			wait = min(wait, next.Sub(t.now()))
		}
		timer := time.NewTimer(max(wait, 0))
		select {
		case <-timer.C:
		case <-t.wake:
		case <-t.ctx.Done():
		}
		timer.Stop()
		if t.ctx.Err() != nil {
			return
		}
	}
}

// serveDue begins to serve all that is due, and returns when the next is; the zero time if none is.
func (t *turn) serveDue() time.Time {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.waiting) > 0 {
		e := t.waiting[0]
		if e.due.After(now) {
			return e.due
		}
		heap.Pop(&t.waiting)
		t.serveLocked(e)
	}
	return time.Time{}
}

// kick has a schedule served now.
func (t *turn) kick(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.busy {
		e.again = true
		return
	}
	if e.place >= 0 {
		heap.Remove(&t.waiting, e.place)
	}
	t.serveLocked(e)
}

// serveLocked is called with mu, for a schedule that is not in the heap.
func (t *turn) serveLocked(e *entry) {
	if t.ctx.Err() != nil {
		return
	}
	e.busy = true
	t.work.Go(func() {
		for {
			until := t.serve(e)
			if t.rest(e, until) {
				return
			}
		}
	})
}

// rest puts a schedule into the heap, unless it is to be served again at once.
func (t *turn) rest(e *entry, until time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.again && t.ctx.Err() == nil {
		e.again = false
		return false
	}
	e.busy = false
	if until.IsZero() || t.ctx.Err() != nil {
		return true
	}
	e.due = until
	heap.Push(&t.waiting, e)
	if e.place == 0 {
		t.rouse()
	}
	return true
}

func (t *turn) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *turn) entry(id string) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.entries[id]
}

// now is the server's time, or a little before.
func (t *turn) now() time.Time { return t.clock.Now(time.Now()) }

func (t *turn) stamp() schemas.Timestamp { return schemas.At(t.now()) }

func (t *turn) watchClock() {
	var wall clock.Wall
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		if wall.Wait(t.ctx, wait, nil) != nil {
			return
		}
		if err := t.lookAtClock(); err != nil && t.ctx.Err() == nil {
			t.log.WithField("err", err).Debug("the server's time is not known; asking again")
			wait = firstLook
		}
	}
}

func (t *turn) lookAtClock() error {
	ctx, cancel := context.WithTimeout(t.ctx, lookLimit)
	defer cancel()
	asked := time.Now()
	at, err := t.bucket.Time(ctx)
	if err != nil {
		return err
	}
	t.clock.ObserveExchange(asked, at, time.Now())
	t.rouse()
	return nil
}

// dueHeap are the schedules that wait, the first one due first.
type dueHeap []*entry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push adds an entry.
func (h *dueHeap) Push(x any) {
	e, _ := x.(*entry)
	e.place = len(*h)
	*h = append(*h, e)
}

// Pop takes the last one.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h, e.place = (*h)[:last], -1
	return e
}

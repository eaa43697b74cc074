package decider

import (
	"sync"

	"github.com/droverhq/drover/internal/goroutines"
)

// mostIdle bounds the goroutines that wait for asks.
const mostIdle = 256

// pool runs at most limit asks at once and holds the others back, in order. While it has no ask a
// few goroutines wait for one.
//
// When even the queue is full, submit blocks. The caller is the goroutine of one subscription, so
// the connection goes on, and tasks wait in the subscription's own buffer. Considered and left: to
// answer those with an error. The broker would count it as a failure of the decider and, after
// some, park runs of which nothing is wrong.
type pool struct {
	do    func(*ask)
	crew  *goroutines.Pool[*ask]
	limit int
	bound int

	mu      sync.Mutex
	space   *sync.Cond // the queue has room, or the pool is closed
	running int
	resting int // of those that were given a slot
	queue   []*ask
	closed  bool
	idle    chan struct{} // closed when the pool is closed and nothing runs or waits
}

func newPool(limit, bound int, do func(*ask)) *pool {
	p := &pool{do: do, limit: limit, bound: bound, idle: make(chan struct{})}
	p.crew = goroutines.New(min(limit, mostIdle), p.work)
	p.space = sync.NewCond(&p.mu)
	return p
}

// submit takes an ask, sooner or later; a closed pool forgets it.
func (p *pool) submit(a *ask) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.running >= p.limit && len(p.queue) >= p.bound && !p.closed {
		p.space.Wait()
	}
	switch {
	case p.closed:
	case p.running < p.limit:
		p.running++
		p.crew.Do(a)
	default:
		p.queue = append(p.queue, a)
	}
}

// here calls do on the goroutine of the caller, in a slot, if one is free and nobody waits for it.
func (p *pool) here(do func()) bool {
	p.mu.Lock()
	if p.closed || p.running >= p.limit {
		p.mu.Unlock()
		return false
	}
	p.running++
	p.mu.Unlock()
	defer p.next() // as in work
	do()
	return true
}

// apart is here on a goroutine of its own, which it waits for.
func (p *pool) apart(do func()) bool {
	return p.here(func() {
		ended := make(chan struct{})
		go func() {
			defer close(ended) // also if do ends its goroutine
			do()
		}()
		<-ended
	})
}

// rest calls do, which waits for something, and lets another ask have the slot of the caller
// meanwhile. Then the caller goes on, even if that is one too many for a moment.
func (p *pool) rest(do func()) {
	p.mu.Lock()
	p.resting++
	p.mu.Unlock()
	p.next()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.resting--
		p.running++
	}()
	do()
}

func (p *pool) work(a *ask) {
	// Deferred, so that an ask that calls runtime.Goexit does not take its slot with it.
	defer p.next()
	p.do(a)
}

func (p *pool) next() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) > 0 && p.running <= p.limit {
		a := p.queue[0]
		p.queue[0] = nil
		p.queue = p.queue[1:]
		p.space.Signal()
		p.crew.Do(a)
		return
	}
	p.running--
	p.settle()
}

func (p *pool) settle() {
	if p.closed && p.running == 0 && p.resting == 0 && len(p.queue) == 0 {
		close(p.idle)
	}
}

// close takes no more asks. Those that run or wait go on; idle is closed after the last one. It is
// called once.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.crew.Close()
	p.space.Broadcast()
	p.settle()
}

// abandon takes back what waits, and returns it with the number of asks that run.
func (p *pool) abandon() (waiting []*ask, running int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting, p.queue = p.queue, nil
	return waiting, p.running + p.resting
}

package coroutine

import (
	"errors"
	"sync/atomic"
	"time"
)

// ErrEvicted is returned by [Dispatcher.Run] after [Dispatcher.Evict].
var ErrEvicted = errors.New("coroutine: the coroutines were evicted")

// Main is the name of the coroutine whose children are named "1", "2" and so on.
const Main = "main"

// Dispatcher runs coroutines, one at a time. It is used by one goroutine at a time, and by the
// coroutine that runs. Only Enter and Halt may be called by any goroutine.
type Dispatcher struct {
	ready    queue
	youngest *Coroutine // of those that have not ended
	failed   *Error     // what ended a coroutine
	loose    *Coroutine // the one that ran when the dispatcher was halted, and may still
	stopped  bool       // nothing more is to run
	evicted  bool

	current atomic.Pointer[Coroutine] // the one that runs
	steps   atomic.Uint64             // odd while one runs; never the same for two
	over    atomic.Bool               // halted or evicted: each API call ends its goroutine
	halted  atomic.Pointer[error]
	foreign atomic.Pointer[Error]
}

// New returns a dispatcher without coroutines.
func New() *Dispatcher { return &Dispatcher{} }

// Go makes a coroutine of that name, which is ready to run. It is for the machine; a coroutine uses
// [Coroutine.Go].
func (d *Dispatcher) Go(name string, fn func(*Coroutine)) *Coroutine {
	c := d.spawn(name, fn)
	c.Ready()
	return c
}

// Run runs what is ready until all coroutines wait or have ended. Its error is the first failure of
// the dispatcher, and every later Run returns it too: then evict.
func (d *Dispatcher) Run() error {
	for {
		if err := d.err(); err != nil {
			return err
		}
		if d.stopped {
			return nil
		}
		c := d.ready.pop()
		if c == nil {
			return nil
		}
		if d.step(c); d.loose == nil {
			d.failed = c.failure
		}
	}
}

// Stop lets no coroutine run any more, also those that are ready: the code has come to its end. The
// coroutine that calls it goes on until it waits or ends.
func (d *Dispatcher) Stop() { d.stopped = true }

// Watch runs fn at once, in a coroutine of its own that may only look: it may not use what begins
// with [Dispatcher.Enter]. It is for code that decides nothing, such as conditions. The error says
// that fn has panicked, or has used such a call; then the dispatcher has not failed.
func (d *Dispatcher) Watch(name string, fn func()) error {
	if err := d.err(); err != nil {
		return err
	}
	c := d.spawn(name, func(*Coroutine) { fn() })
	c.watching = name
	if d.step(c); d.loose == nil && c.failure != nil {
		return c.failure
	}
	return d.err()
}

// Halt makes the dispatcher fail with err, also while a coroutine runs: Run returns without it.
// That coroutine may still use what it shares with the machine, until its next API call: then only
// Evict is to be called, which waits for it. API code that halts ends its coroutine by
// [runtime.Goexit]. Halt does nothing if the dispatcher is halted already.
func (d *Dispatcher) Halt(err error) {
	if !d.halted.CompareAndSwap(nil, &err) {
		return
	}
	d.over.Store(true)
	if c := d.current.Load(); c != nil {
		c.back <- halt
	}
}

func (d *Dispatcher) err() error {
	if f := d.foreign.Load(); f != nil { // often the cause of what came next
		return f
	}
	if d.failed != nil {
		return d.failed
	}
	if h := d.halted.Load(); h != nil {
		return *h
	}
	if d.evicted {
		return ErrEvicted
	}
	return nil
}

// step lets a coroutine run until it waits, ends, or the dispatcher is halted.
func (d *Dispatcher) step(c *Coroutine) {
	d.steps.Add(1)
	d.current.Store(c)
	// Halt looks at current after it has set halted. So one of the two sees the other.
	if d.halted.Load() == nil {
		c.run()
		if <-c.back == halt {
			d.loose = c
		}
	}
	d.current.Store(nil)
	d.steps.Add(1)
	if d.loose == nil && c.ended {
		d.unlink(c)
	}
}

// Evict ends all coroutines, one after the other: first the one that ran when the dispatcher was
// halted, then the others, the youngest first. Their deferred functions run, and each API call in
// them ends them. One that does not end within the limit is left alone. The errors are about those,
// and about panics of deferred functions.
func (d *Dispatcher) Evict(limit time.Duration) (problems []error) {
	d.evicted = true
	d.over.Store(true)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	end := func(c *Coroutine) {
		if c.begun {
			timer.Reset(limit)
			if err := c.evict(timer.C); err != nil {
				problems = append(problems, err)
			}
		}
		d.unlink(c)
	}
	if d.loose != nil {
		end(d.loose)
		d.loose = nil
	}
	for d.youngest != nil {
		end(d.youngest)
	}
	return problems
}

func (d *Dispatcher) link(c *Coroutine) {
	if c.older = d.youngest; c.older != nil {
		c.older.younger = c
	}
	d.youngest = c
}

func (d *Dispatcher) unlink(c *Coroutine) {
	if c.younger != nil {
		c.younger.older = c.older
	} else {
		d.youngest = c.older
	}
	if c.older != nil {
		c.older.younger = c.younger
	}
	c.older, c.younger = nil, nil
}

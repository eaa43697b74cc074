package coroutine

import (
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
)

// Coroutine is a strand of a workflow's code.
type Coroutine struct {
	d              *Dispatcher
	name           string
	fn             func(*Coroutine)
	id             uint64
	children       int
	older, younger *Coroutine
	failure        *Error // what has ended it

	resume chan struct{} // the dispatcher lets it run
	back   chan handover // it lets the dispatcher run

	begun    bool // it has a goroutine
	queued   bool
	watching string // the code that runs and may only look
	returned bool   // fn has
	ended    bool
	given    atomic.Bool // up: nobody waits for its end, or it has ended
}

// handover says who lets the dispatcher go on.
type handover int

const (
	mine handover = iota + 1 // the coroutine itself
	halt                     // Halt
)

var ids atomic.Uint64 // of the coroutines of the process, for dumps of its goroutines

func (d *Dispatcher) spawn(name string, fn func(*Coroutine)) *Coroutine {
	c := &Coroutine{
		d: d, name: name, fn: fn, id: ids.Add(1),
		// With room for all that is ever sent while nobody receives: of back, by Halt and by the end.
		resume: make(chan struct{}, 1), back: make(chan handover, 2),
	}
	d.link(c)
	return c
}

// Name is the path of the coroutine.
func (c *Coroutine) Name() string { return c.name }

// Go makes a child, which is ready to run. The coroutine must be the one that runs.
func (c *Coroutine) Go(fn func(*Coroutine)) *Coroutine {
	c.children++
	name := strconv.Itoa(c.children)
	if c.name != Main {
		name = c.name + "." + name
	}
	return c.d.Go(name, fn)
}

// Park waits until [Coroutine.Ready]. It may also return without: look again at what is waited for.
// It does not return if the coroutine is evicted.
func (c *Coroutine) Park() {
	if c.d.over.Load() {
		runtime.Goexit()
	}
	c.back <- mine
	<-c.resume
	if c.d.over.Load() {
		runtime.Goexit()
	}
}

// Watch runs fn as code of the coroutine that may only look, as [Dispatcher.Watch] does. Another API
// call fails the coroutine, and names the code.
func (c *Coroutine) Watch(name string, fn func()) {
	c.watching = name
	defer func() { c.watching = "" }()
	fn()
}

// Ready lets the coroutine run after those that are ready already. A call that comes before
// [Coroutine.Park] is not lost.
func (c *Coroutine) Ready() {
	if !c.queued && !c.ended {
		c.queued = true
		c.d.ready.push(c)
	}
}

// run lets the coroutine go on. Its goroutine begins as late as possible.
func (c *Coroutine) run() {
	c.queued = false
	if c.begun {
		c.resume <- struct{}{}
		return
	}
	c.begun = true
	go begin([2]uint64{magic, c.id}, c)
}

// begin is the whole life of a coroutine. Its frame is how a goroutine is known as a coroutine, and
// the array how it is found in a dump: arrays are passed on the stack, so a dump shows them.
//
//go:noinline
func begin(tag [2]uint64, c *Coroutine) {
	defer c.end()
	defer c.catch()
	c.fn(c)
	c.returned = true
}

// catch takes note of what has ended the coroutine, on its stack.
func (c *Coroutine) catch() {
	switch v := recover(); {
	case v != nil:
		c.fail(&Error{Kind: Panicked, Value: v, Stack: callers()})
	case !c.returned && !c.d.over.Load():
		c.fail(&Error{Kind: Exited, Stack: callers()})
	}
}

// fail takes note of the first failure: others follow from it.
func (c *Coroutine) fail(err *Error) {
	if c.failure == nil {
		err.Coroutine = c.name
		c.failure = err
	}
}

func (c *Coroutine) end() {
	c.ended = true
	c.given.Store(true)
	c.back <- mine
}

// evict ends the coroutine, or gives it up.
func (c *Coroutine) evict(timeUp <-chan time.Time) error {
	if c != c.d.loose {
		c.resume <- struct{}{}
	}
	for {
		select {
		case by := <-c.back:
			switch {
			case by == halt:
			case !c.ended: // it has just begun to wait
				c.resume <- struct{}{}
			case c.failure != nil:
				return c.failure
			default:
				return nil
			}
		case <-timeUp:
			if c.given.Swap(true) { // it has ended
				timeUp = nil
				continue
			}
			found := find(c.id)
			close(c.resume) // should it come to wait after all
			return &Error{
				Kind: Left, Coroutine: c.name, What: found.state, Stack: found.stack(),
			}
		}
	}
}

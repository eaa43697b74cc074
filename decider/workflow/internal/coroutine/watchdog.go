package coroutine

import (
	"sync"
	"time"
)

// Watchdog finds coroutines that wait for something outside the workflow, such as a native channel:
// they would wait for ever, or do something else in a replay. One that is only slow is told of. A
// watchdog is for all dispatchers of a worker.
type Watchdog struct {
	after, every time.Duration
	slow         func(*Error)

	mu   sync.Mutex
	next time.Time // when it may look at all goroutines again
}

// NewWatchdog returns a watchdog that looks at a coroutine which has run for the time after, and at
// all goroutines of the process once in every at most, since they stand still meanwhile. slow is told
// once of each run of a coroutine that is long and not stuck.
func NewWatchdog(after, every time.Duration, slow func(*Error)) *Watchdog {
	return &Watchdog{after: after, every: every, slow: slow}
}

// Guard watches a dispatcher until stop is called. If a coroutine is stuck, it is noticed after one
// to three times the watchdog's time, and the dispatcher is halted with an [Error].
func (w *Watchdog) Guard(d *Dispatcher) (stop func()) {
	g := &guard{w: w, d: d}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = time.AfterFunc(w.after, g.look)
	return g.stop
}

func (w *Watchdog) mayLook() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Before(w.next) {
		return false
	}
	w.next = now.Add(w.every)
	return true
}

type guard struct {
	w     *Watchdog
	d     *Dispatcher
	timer *time.Timer

	mu      sync.Mutex
	stopped bool
	step    uint64     // that was under way when it looked last
	suspect *goroutine // what waited then
	told    uint64     // the step that is known to be slow
}

func (g *guard) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	g.timer.Stop()
}

func (g *guard) look() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return
	}
	step, c := g.d.steps.Load(), g.d.current.Load()
	again := g.w.after
	switch {
	case c == nil || step != g.step:
		g.step, g.suspect = step, nil
	case g.suspect != nil || g.w.mayLook():
		if g.judge(c) {
			return
		}
		if g.suspect != nil {
			again = max(g.w.after/10, time.Millisecond)
		}
	}
	g.timer.Reset(again)
}

// judge looks at a coroutine that has run for long, and halts the dispatcher if it is stuck: it waits,
// twice at the same place.
func (g *guard) judge(c *Coroutine) (stuck bool) {
	now := find(c.id)
	err := &Error{Kind: Slow, Coroutine: c.name, What: now.state, Stack: now.stack()}
	switch {
	case now.state == "": // it has ended
		g.suspect = nil
	case !now.waits():
		g.suspect = nil
		if g.told != g.step {
			g.told = g.step
			g.w.slow(err)
		}
	case g.suspect != nil && *g.suspect == now:
		err.Kind = Stuck
		g.d.Halt(err)
		return true
	default:
		g.suspect = &now
	}
	return false
}

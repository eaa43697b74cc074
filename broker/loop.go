package broker

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// loop runs closures one after another on one goroutine. Anybody may post; only closures on the
// loop may use after.
//
// The queue is unbounded on purpose: acknowledgements must never block the connection that delivers
// them, or the loop and the connection would wait for each other. What could flood it (the two
// logs) is bounded by its own reader.
type loop struct {
	mu     sync.Mutex
	queue  []func()
	signal chan struct{}
	timers timers
}

func newLoop() *loop { return &loop{signal: make(chan struct{}, 1)} }

// post queues f.
func (l *loop) post(f func()) {
	l.mu.Lock()
	l.queue = append(l.queue, f)
	first := len(l.queue) == 1
	l.mu.Unlock()
	if first {
		select {
		case l.signal <- struct{}{}:
		default:
		}
	}
}

// after runs f on the loop once d has passed, unless it is canceled before.
func (l *loop) after(d time.Duration, f func()) *timer {
	t := &timer{at: time.Now().Add(d), f: f}
	heap.Push(&l.timers, t)
	return t
}

// cancel forgets a timer and what its function holds in memory. One that has run or was canceled is
// left alone.
func (l *loop) cancel(t *timer) {
	if t.place > 0 {
		heap.Remove(&l.timers, t.place-1)
	}
}

// take returns what is queued, and queues from then on in the memory of an earlier batch.
func (l *loop) take(earlier []func()) []func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := l.queue
	l.queue = earlier[:0]
	return batch
}

// run works until ctx is done. It calls flush after each batch, so that what a batch has caused
// goes out together.
func (l *loop) run(ctx context.Context, flush func()) {
	clock := time.NewTimer(time.Hour)
	defer clock.Stop()
	// the clock, at the latest; what it would ring for may have been canceled
	fires := time.Now().Add(time.Hour)
	var batch []func()
	for {
		if batch = l.take(batch); len(batch) == 0 {
			// else there is no need to look at the clock, which costs as much as a closure
			if len(l.timers) > 0 && l.timers[0].at.Before(fires) {
				fires = l.timers[0].at
				clock.Reset(max(time.Until(fires), 0))
			}
			select {
			case <-ctx.Done():
				return
			case <-l.signal:
			case <-clock.C:
				fires = time.Now().Add(time.Hour)
				clock.Reset(time.Hour)
			}
			batch = l.take(batch)
		}
		for i, f := range batch {
			if ctx.Err() != nil {
				return
			}
			f()
			batch[i] = nil
		}
		for now := time.Now(); len(l.timers) > 0 && !l.timers[0].at.After(now); {
			t, _ := heap.Pop(&l.timers).(*timer)
			t.f()
		}
		flush()
	}
}

type timer struct {
	at    time.Time
	f     func()
	place int // in the heap, from 1 on; 0: in none
}

type timers []*timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i+1, j+1
}

func (t *timers) Push(x any) {
	last := x.(*timer)
	*t = append(*t, last)
	last.place = len(*t)
}

func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	last.place = 0
	return last
}

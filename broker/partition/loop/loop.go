// Package loop runs the closures of a partition one after another on one goroutine, and its timers
// between them. All state of a partition is touched by closures on its loop alone, so none of it
// needs a lock.
package loop

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Loop runs closures one after another on one goroutine. Anybody may post; only closures on the
// loop may use after.
//
// The queue is unbounded on purpose: acknowledgements must never block the connection that delivers
// them, or the loop and the connection would wait for each other. What could flood it (the two
// logs) is bounded by its own reader.
type Loop struct {
	mu     sync.Mutex
	queue  []func()
	signal chan struct{}
	timers timers
}

func New() *Loop { return &Loop{signal: make(chan struct{}, 1)} }

// Post queues f.
func (l *Loop) Post(f func()) {
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

// After runs f on the loop once d has passed, unless it is canceled before.
func (l *Loop) After(d time.Duration, f func()) *Timer {
	t := &Timer{at: time.Now().Add(d), f: f}
	heap.Push(&l.timers, t)
	return t
}

// Cancel forgets a timer and what its function holds in memory. One that has run or was canceled is
// left alone.
func (l *Loop) Cancel(t *Timer) {
	if t.place > 0 {
		heap.Remove(&l.timers, t.place-1)
	}
}

// Take returns what is queued, and queues from then on in the memory of an earlier batch.
func (l *Loop) Take(earlier []func()) []func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := l.queue
	l.queue = earlier[:0]
	return batch
}

// Run works until ctx is done. It calls flush after each batch, so that what a batch has caused
// goes out together.
func (l *Loop) Run(ctx context.Context, flush func()) {
	clock := time.NewTimer(time.Hour)
	defer clock.Stop()
	// the clock, at the latest; what it would ring for may have been canceled
	fires := time.Now().Add(time.Hour)
	var batch []func()
	for {
		if batch = l.Take(batch); len(batch) == 0 {
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
			batch = l.Take(batch)
		}
		for i, f := range batch {
			if ctx.Err() != nil {
				return
			}
			f()
			batch[i] = nil
		}
		for now := time.Now(); len(l.timers) > 0 && !l.timers[0].at.After(now); {
			t, _ := heap.Pop(&l.timers).(*Timer)
			t.f()
		}
		flush()
	}
}

type Timer struct {
	at    time.Time
	f     func()
	place int // in the heap, from 1 on; 0: in none
}

type timers []*Timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i+1, j+1
}

func (t *timers) Push(x any) {
	last := x.(*Timer)
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

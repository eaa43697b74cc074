package coroutine_test

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
)

// native is a wait for something outside the workflow, and what ends it.
type native struct{ wait, release func() }

func channels() map[string]native {
	a, b, c := make(chan int), make(chan int), make(chan int)
	var group sync.WaitGroup
	group.Add(1)
	cond := sync.NewCond(new(sync.Mutex))
	return map[string]native{
		"chan receive": {func() { <-a }, func() { close(a) }},
		"chan send":    {func() { b <- 1 }, func() { <-b }},
		"select": {
			func() {
				select {
				case <-a:
				case <-c:
				}
			},
			func() { close(c) },
		},
		"sleep":               {func() { time.Sleep(time.Hour) }, func() {}},
		"sync.WaitGroup.Wait": {group.Wait, group.Done},
		"sync.Cond.Wait": {
			func() { cond.L.Lock(); cond.Wait(); cond.L.Unlock() },
			func() { cond.L.Lock(); cond.Signal(); cond.L.Unlock() },
		},
	}
}

// A coroutine that waits natively makes the dispatcher fail, with the line of the user.
func TestStuck(t *testing.T) {
	for state := range channels() {
		inBubble(t, func(r *rig) {
			n, began := channels()[state], time.Now() // of this bubble
			dog := coroutine.NewWatchdog(time.Second, 0, func(e *coroutine.Error) { t.Error(e) })
			stop := dog.Guard(r.Dispatcher)
			defer stop()
			r.Go("main", func(c *coroutine.Coroutine) {
				c.Go(func(*coroutine.Coroutine) { n.wait() })
			})
			e := wantFailure(t, r.Run(), coroutine.Stuck, "1", "outside the workflow", "watchdog_test.go:", "workflow.Go")
			if took := time.Since(began); e.What != state || took < time.Second || took > 3*time.Second {
				t.Errorf("%s after %v, want %s", e.What, took, state)
			}
			time.AfterFunc(limit/2, n.release)
			if problems := r.Evict(2 * time.Hour); len(problems) > 0 {
				t.Errorf("%s: %v", state, problems)
			}
		})
	}
}

// A bubble takes these for work, so the clock is the real one.
func TestStuckOutsideBubbles(t *testing.T) {
	var mu sync.Mutex
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	mu.Lock()
	for state, n := range map[string]native{
		"sync.Mutex.Lock": {func() { mu.Lock() }, mu.Unlock},
		"IO wait":         {func() { _, _ = read.Read(make([]byte, 1)) }, func() { _ = write.Close() }},
	} {
		inRealTime(t, func(r *rig) {
			// That it is taken for slow at first, on its way there, is no mistake.
			dog := coroutine.NewWatchdog(10*time.Millisecond, 0, func(*coroutine.Error) {})
			defer dog.Guard(r.Dispatcher)()
			r.Go("main", func(*coroutine.Coroutine) { n.wait() })
			e := wantFailure(t, r.Run(), coroutine.Stuck, "main", "watchdog_test.go:")
			if e.What != state {
				t.Errorf("got %s, want %s", e.What, state)
			}
			n.release()
			_ = r.Evict(time.Minute)
		})
	}
}

// A coroutine that computes is slow, and goes on.
// sdk-go#329, #435, #773, #2046, #2418.
func TestSlowIsNotStuck(t *testing.T) {
	inRealTime(t, func(r *rig) {
		var told atomic.Pointer[coroutine.Error]
		dog := coroutine.NewWatchdog(time.Millisecond, 0, func(e *coroutine.Error) {
			if !told.CompareAndSwap(nil, e) {
				t.Errorf("told twice: %v", e)
			}
		})
		defer dog.Guard(r.Dispatcher)()
		done := false
		r.Go("main", func(*coroutine.Coroutine) {
			for limit := time.Now().Add(time.Minute); told.Load() == nil && time.Now().Before(limit); {
			}
			done = true
		})
		r.run()
		if !done || told.Load() == nil {
			t.Fatalf("done: %t, told: %v", done, told.Load())
		}
		if e := told.Load(); e.Kind != coroutine.Slow || e.Coroutine != "main" {
			t.Errorf("told %v", e)
		}
	})
}

// All goroutines stand still while one is looked for. So that is not done often, and not at all for
// who has been quick.
func TestWatchdogRarelyLooks(t *testing.T) {
	inBubble(t, func(r *rig) {
		dog := coroutine.NewWatchdog(time.Second, 10*time.Second, func(e *coroutine.Error) { t.Error(e) })
		began := time.Now()
		for n, earliest := range []time.Duration{0, 10 * time.Second, 20 * time.Second} {
			d := coroutine.New()
			stop := dog.Guard(d)
			hold := make(chan bool)
			d.Go("main", func(*coroutine.Coroutine) { <-hold })
			wantFailure(t, d.Run(), coroutine.Stuck, "main")
			if took := time.Since(began); took < earliest || took > earliest+15*time.Second {
				t.Errorf("%d: after %v, want %v and a little", n, took, earliest)
			}
			stop()
			close(hold)
			_ = d.Evict(limit)
		}
	})
	inBubble(t, func(r *rig) {
		dog := coroutine.NewWatchdog(time.Second, 0, func(e *coroutine.Error) { t.Error(e) })
		defer dog.Guard(r.Dispatcher)()
		main := r.Go("main", func(c *coroutine.Coroutine) {
			for {
				c.Park()
				time.Sleep(900 * time.Millisecond) // each time another run of it
			}
		})
		for range 20 {
			r.run()
			main.Ready()
		}
	})
}

// Who waits at one place and then at another makes progress.
func TestMovingIsNotStuck(t *testing.T) {
	inBubble(t, func(r *rig) {
		dog := coroutine.NewWatchdog(time.Second, 0, func(e *coroutine.Error) { t.Error(e) })
		defer dog.Guard(r.Dispatcher)()
		r.Go("main", func(*coroutine.Coroutine) {
			time.Sleep(2050 * time.Millisecond) // looked at after 2 s
			time.Sleep(100 * time.Millisecond)  // after 2.1 s
			time.Sleep(100 * time.Millisecond)  // after 2.2 s
		})
		r.run()
	})
}

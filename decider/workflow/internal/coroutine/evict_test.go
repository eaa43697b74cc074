package coroutine_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
)

// Deferred functions run, those of the youngest first. They recover nothing, and decide nothing.
// sdk-go#520.
func TestEvict(t *testing.T) {
	inBubble(t, func(r *rig) {
		body := func(c *coroutine.Coroutine) {
			defer r.say("%s ends", c.Name())
			defer func() {
				_ = r.call("workflow.Call")
				r.say("a call returned")
			}()
			defer func() { r.say("%v", recover()) }()
			_ = r.call("workflow.Sleep")
			r.say("the code goes on")
		}
		r.Go("main", func(c *coroutine.Coroutine) {
			c.Go(body)
			c.Go(body)
			body(c)
		})
		r.run()
		r.Go("u1", func(*coroutine.Coroutine) { r.say("it has begun") })
		r.evict()
		r.want("<nil>", "2 ends", "<nil>", "1 ends", "<nil>", "main ends")
		if err := r.Run(); !errors.Is(err, coroutine.ErrEvicted) {
			t.Errorf("got %v, want ErrEvicted", err)
		}
	})
}

// What a deferred function spawns or panics with during an eviction.
func TestEvictPanics(t *testing.T) {
	inBubble(t, func(r *rig) {
		for _, name := range []string{"a", "b"} {
			r.Go(name, func(*coroutine.Coroutine) {
				defer explode("in " + name)
				_ = r.call("workflow.Sleep")
			})
		}
		r.run()
		problems := r.Evict(limit)
		if len(problems) != 2 {
			t.Fatal(problems)
		}
		wantFailure(t, problems[0], coroutine.Panicked, "b", "in b")
		wantFailure(t, problems[1], coroutine.Panicked, "a", "in a")
	})
}

// One that does not end in time is reported, and the others end.
func TestEvictGivesUp(t *testing.T) {
	inBubble(t, func(r *rig) {
		hold := make(chan bool)
		r.Go("main", func(*coroutine.Coroutine) {
			defer r.say("main ends")
			_ = r.call("workflow.Sleep")
		})
		r.Go("u1", func(*coroutine.Coroutine) {
			defer func() { <-hold }()
			_ = r.call("workflow.Sleep")
		})
		r.run()
		began := time.Now()
		problems := r.Evict(limit)
		if len(problems) != 1 || time.Since(began) != limit {
			t.Fatalf("%v after %v", problems, time.Since(began))
		}
		wantFailure(t, problems[0], coroutine.Left, "u1", "did not end", "evict_test.go:", "chan receive")
		r.want("main ends")
		close(hold)
	})
}

// A dispatcher can be halted while a coroutine runs. The coroutine ends at its next API call.
func TestHalt(t *testing.T) {
	inBubble(t, func(r *rig) {
		hold, late := make(chan bool), errors.New("too late")
		r.Go("main", func(c *coroutine.Coroutine) {
			c.Go(func(*coroutine.Coroutine) {
				defer r.say("its child ends")
				_ = r.call("workflow.Sleep")
			})
			yield(c)
			defer r.say("main ends")
			<-hold
			_ = r.call("workflow.Call")
			r.say("the code goes on")
		})
		time.AfterFunc(time.Second, func() { r.Halt(late); r.Halt(errors.New("second")) })
		for range 2 {
			if err := r.Run(); !errors.Is(err, late) {
				t.Fatalf("got %v, want the one it was halted with", err)
			}
		}
		time.AfterFunc(limit/2, func() { close(hold) })
		r.evict() // it waits for it, before others run their deferred functions
		r.want("main ends", "its child ends")
	})
	inBubble(t, func(r *rig) {
		late := errors.New("too late")
		r.Go("main", func(c *coroutine.Coroutine) { yield(c) })
		r.Halt(late)
		if err := r.Run(); !errors.Is(err, late) {
			t.Fatalf("got %v, want the one it was halted with", err)
		}
	})
}

// API code fails the dispatcher from within.
func TestHaltByACoroutine(t *testing.T) {
	inBubble(t, func(r *rig) {
		mismatch := errors.New("mismatch")
		r.Go("main", func(*coroutine.Coroutine) {
			defer func() {
				_ = r.call("workflow.Call")
				r.say("a call returned")
			}()
			r.Halt(mismatch)
			runtime.Goexit()
		})
		if err := r.Run(); !errors.Is(err, mismatch) {
			t.Fatalf("got %v, want the one it was halted with", err)
		}
		r.evict()
		r.want()
	})
}

// Whatever the coroutines do at the moment of the halt, nothing is left after the eviction.
func TestHaltAtAnyMoment(t *testing.T) {
	inBubble(t, func(*rig) {
		late := errors.New("too late")
		for n := range 100 {
			d := coroutine.New()
			for range 3 {
				d.Go("a", func(c *coroutine.Coroutine) {
					for {
						c.Go(func(*coroutine.Coroutine) {})
						if n%2 == 0 {
							_, _ = d.Enter("workflow.Go")
						}
						runtime.Gosched() // to who halts, if there is one processor only
						yield(c)
					}
				})
			}
			halted := make(chan bool)
			go func() {
				d.Halt(late)
				close(halted)
			}()
			if err := d.Run(); !errors.Is(err, late) {
				t.Fatalf("got %v, want the one it was halted with", err)
			}
			<-halted
			if problems := d.Evict(limit); len(problems) > 0 || d.Live() > 0 {
				t.Fatal(problems, d.Live())
			}
		}
	})
}

package coroutine_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
)

// Who is ready runs in the order in which it became so; names are paths.
func TestOrder(t *testing.T) {
	inBubble(t, func(r *rig) {
		child := func(c *coroutine.Coroutine) {
			r.say("%s begins", c.Name())
			c.Go(func(c *coroutine.Coroutine) { r.say("%s", c.Name()) })
			yield(c)
			c.Go(func(c *coroutine.Coroutine) { r.say("%s", c.Name()) })
			r.say("%s ends", c.Name())
		}
		r.Go("main", func(c *coroutine.Coroutine) {
			c.Go(child)
			c.Go(child)
			r.say("main ends")
		})
		r.Go("u1", child)
		r.run()
		r.want("main ends", "u1 begins", "1 begins", "2 begins", "u1.1", "u1 ends", "1.1", "1 ends", "2.1", "2 ends", "u1.2", "1.2", "2.2")
		if r.Live() != 0 {
			t.Errorf("%d are alive, want none", r.Live())
		}
	})
}

func TestWaiters(t *testing.T) {
	inBubble(t, func(r *rig) {
		var one, two coroutine.Waiters
		waits := func(w *coroutine.Waiters) func(*coroutine.Coroutine) {
			return func(c *coroutine.Coroutine) {
				for {
					wait(w, c)
					r.say("%s", c.Name())
				}
			}
		}
		for name, w := range map[string]*coroutine.Waiters{"a": &one, "b": &two} {
			r.Go(name, waits(w))
		}
		r.Go("both", func(c *coroutine.Coroutine) {
			one.Add(c)
			two.Add(c)
			c.Park()
			one.Remove(c)
			two.Remove(c)
			r.say("both")
		})
		r.run()
		r.want()
		one.Wake()
		r.run()
		r.want("a", "both")
		one.Wake()
		one.Wake()
		two.Wake()
		r.run()
		r.want("a", "b") // no more than those that wait
	})
}

// Who waits for something else by now is not woken.
func TestWaitersForget(t *testing.T) {
	inBubble(t, func(r *rig) {
		var one, two coroutine.Waiters
		c := r.Go("main", func(c *coroutine.Coroutine) {
			wait(&one, c)
			r.say("for nothing")
			wait(&two, c)
			r.say("two")
			one.Add(c)
			c.Park()
			r.say("one")
			wait(&two, c)
			r.say("two again")
		})
		r.run()
		c.Ready()
		r.run()
		r.want("for nothing")
		for _, w := range []*coroutine.Waiters{&one, &two, &one, &one} {
			w.Wake()
			r.run()
		}
		r.want("two", "one")
	})
}

// A wake-up that comes first is not lost.
func TestReadyBeforePark(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.Go("main", func(c *coroutine.Coroutine) {
			c.Ready()
			c.Ready()
			c.Park()
			r.say("woken")
			c.Park()
			r.say("again")
		})
		r.run()
		r.want("woken")
	})
}

// A coroutine that yields for long costs no memory, and keeps nobody from running.
func TestYield(t *testing.T) {
	inBubble(t, func(r *rig) {
		other := 0
		r.Go("main", func(c *coroutine.Coroutine) {
			for range 1000 {
				yield(c)
			}
		})
		r.Go("other", func(c *coroutine.Coroutine) {
			for range 1000 {
				other++
				yield(c)
			}
		})
		r.run()
		if other != 1000 || r.Live() != 0 {
			t.Errorf("the other one ran %d times, %d are alive", other, r.Live())
		}
	})
}

// What a thread is locked to does not matter: a coroutine is a goroutine.
func TestLockedThreads(t *testing.T) {
	inBubble(t, func(r *rig) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		r.Go("main", func(c *coroutine.Coroutine) {
			runtime.LockOSThread()
			c.Go(func(c *coroutine.Coroutine) { c.Park() })
			yield(c)
			r.say("on")
		})
		r.run()
		r.want("on")
	})
}

// The same program runs the same way each time, and whenever it is evicted it leaves nothing.
func TestDeterminism(t *testing.T) {
	inBubble(t, func(r *rig) {
		rapid.Check(t, func(rt *rapid.T) {
			program := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 30).Draw(rt, "program")
			wakes := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 10).Draw(rt, "wakes")
			first, second := play(rt, program, wakes), play(rt, program, wakes)
			if !slices.Equal(first, second) {
				rt.Errorf("%v\n%v", first, second)
			}
		})
	})
}

// play lets all coroutines run the same program, of which each takes the next step.
func play(t *rapid.T, program, wakes []int) (trace []string) {
	d := coroutine.New()
	var waiting [4]coroutine.Waiters
	at := 0
	var body func(c *coroutine.Coroutine)
	body = func(c *coroutine.Coroutine) {
		defer func() { trace = append(trace, c.Name()+" ends") }()
		for at < len(program) {
			step := program[at]
			at++
			trace = append(trace, c.Name())
			switch step {
			case 0:
				c.Go(body)
			case 1:
				yield(c)
			case 2:
				return
			default:
				wait(&waiting[step-2], c)
			}
		}
	}
	d.Go(coroutine.Main, body)
	for _, w := range wakes {
		if err := d.Run(); err != nil {
			t.Fatal(err)
		}
		waiting[w].Wake()
	}
	if problems := d.Evict(limit); len(problems) > 0 || d.Live() != 0 {
		t.Fatal(problems, d.Live())
	}
	if err := d.Run(); !errors.Is(err, coroutine.ErrEvicted) {
		t.Fatal(err)
	}
	return trace
}

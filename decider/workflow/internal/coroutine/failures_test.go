package coroutine_test

import (
	"errors"
	"io"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
)

func explode(v any) { panic(v) }

// A panic is caught with the user's stack, and nobody runs after it.
func TestPanic(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.Go("main", func(c *coroutine.Coroutine) {
			c.Go(func(*coroutine.Coroutine) { explode(io.ErrUnexpectedEOF) })
			c.Go(func(*coroutine.Coroutine) { r.say("after it") })
			c.Park()
		})
		e := wantFailure(t, r.Run(), coroutine.Panicked, "1", "panicked", "failures_test.go:", "unexpected EOF")
		if e.Stack[0].Function != "github.com/droverhq/drover/decider/workflow/internal/coroutine_test.explode" ||
			!strings.Contains(e.Stack[1].Function, "TestPanic") || strings.Contains(e.Stack.String(), "gopanic") {
			t.Errorf("got %v, want the user's lines only", e.Stack)
		}
		if err := r.Run(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v from the next run, want the same", err)
		}
		r.evict()
		r.want()
	})
}

func none() map[string]int { return nil }

func TestPanicsOfTheRuntime(t *testing.T) {
	for name, fn := range map[string]func(){
		"nil map":    func() { none()["a"] = 1 },
		"nil":        func() { panic(nil) },
		"index":      func() { var s []int; _ = s[len(s)] },
		"in a defer": func() { defer explode("second"); explode("first") },
	} {
		inBubble(t, func(r *rig) {
			r.Go("main", func(*coroutine.Coroutine) { fn() })
			e := wantFailure(t, r.Run(), coroutine.Panicked, "main")
			if e.Value == nil {
				t.Errorf("%s: no value", name)
			}
		})
	}
}

func TestGoexit(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.Go("main", func(c *coroutine.Coroutine) {
			c.Go(func(*coroutine.Coroutine) {
				defer r.say("deferred")
				new(testing.T).FailNow()
			})
			c.Park()
		})
		wantFailure(t, r.Run(), coroutine.Exited, "1", "failures_test.go:", "t.FailNow")
		r.evict()
		r.want("deferred")
	})
}

// The API of another goroutine ends that goroutine, whether a coroutine runs or not.
func TestForeignGoroutine(t *testing.T) {
	for _, running := range []bool{true, false} {
		inBubble(t, func(r *rig) {
			ended := make(chan bool)
			stray := func() {
				returned := false
				defer func() { ended <- returned }()
				_, _ = r.Enter("workflow.Call")
				returned = true
			}
			r.Go("main", func(*coroutine.Coroutine) {
				if running {
					go stray()
					if <-ended {
						t.Error("the call has returned")
					}
				}
			})
			if !running {
				r.run()
				go stray()
				if <-ended {
					t.Error("the call has returned")
				}
			}
			e := wantFailure(t, r.Run(), coroutine.Foreign, "", "workflow.Call was called at failures_test.go:", "workflow.Go")
			if e.What != "workflow.Call" {
				t.Error(e.What)
			}
		})
	}
}

// A coroutine of the runtime is a goroutine of its own, too.
func TestPulledIterator(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.Go("main", func(*coroutine.Coroutine) {
			next, stop := iter.Pull(func(yield func(int) bool) {
				_ = r.call("workflow.Sleep")
				yield(1)
			})
			defer stop()
			next()
		})
		wantFailure(t, r.Run(), coroutine.Foreign, "", "workflow.Sleep")
	})
}

// While a coroutine panics, or ends, the API refuses: also after recover, and in whatever a deferred
// function calls. The panic keeps its value.
func TestNoAPIDuringAPanic(t *testing.T) {
	for name, fn := range map[string]struct {
		end  func()
		kind coroutine.Kind
	}{
		"panic":  {func() { explode("first") }, coroutine.Panicked},
		"Goexit": {func() { runtime.Goexit() }, coroutine.Exited},
	} {
		inBubble(t, func(r *rig) {
			r.Go("main", func(*coroutine.Coroutine) {
				defer func() { r.say("%v", errors.Is(r.call("workflow.Call"), coroutine.ErrEnding)) }()
				fn.end()
			})
			e := wantFailure(t, r.Run(), fn.kind, "main")
			if fn.kind == coroutine.Panicked && e.Value != "first" {
				t.Errorf("%s: got the value %v", name, e.Value)
			}
			r.want("true")
		})
	}
	inBubble(t, func(r *rig) {
		r.Go("main", func(c *coroutine.Coroutine) {
			func() {
				defer func() {
					r.say("%v", recover())
					r.say("%v", r.call("workflow.Call") != nil)
				}()
				explode("first")
			}()
			defer func() { // of a function that returns
				r.say("%v", r.call("workflow.Call"))
			}()
			c.Ready()
		})
		r.run()
		r.want("first", "true", "<nil>")
	})
}

// A stack that is deeper than the usual is looked through to its end.
func TestDeepStack(t *testing.T) {
	inBubble(t, func(r *rig) {
		var deep func(n int) error
		deep = func(n int) error {
			if n == 0 {
				return r.call("workflow.Call")
			}
			err := deep(n - 1)
			return err
		}
		r.Go("main", func(c *coroutine.Coroutine) {
			c.Ready()
			r.say("%v", deep(5000))
		})
		r.run()
		r.want("<nil>")
	})
}

// Code that may only look is refused everything else, and the dispatcher does not fail by it.
func TestWatch(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.Go("main", func(c *coroutine.Coroutine) { c.Park() })
		r.run()
		if err := r.Watch("condition", func() { r.say("it looks") }); err != nil {
			t.Error(err)
		}
		r.want("it looks")
		err := r.Watch("condition", func() { _ = r.call("workflow.Call"); r.say("it returned") })
		wantFailure(t, err, coroutine.Watching, "condition", "workflow.Call was called at", "may only read")
		wantFailure(t, r.Watch("query", func() { explode(1) }), coroutine.Panicked, "query")
		wantFailure(t, r.Watch("query", func() { new(testing.T).FailNow() }), coroutine.Exited, "query")
		r.run()
		r.want()
		if r.Live() != 1 {
			t.Errorf("%d coroutines are alive, want main", r.Live())
		}
	})
}

package deadline

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/internal/virtual"
)

var (
	errLate   = errors.New("late")
	errEnough = errors.New("enough")
	errParent = errors.New("the parent ended")
)

type key struct{}

// Whatever happens, and whether somebody waits for it or looks after it, the context tells what one of the standard library
// tells.
func TestEndsAsTheStandardLibrarys(t *testing.T) {
	type family struct {
		ctx    context.Context
		cancel context.CancelCauseFunc
		parent context.CancelCauseFunc
	}
	ends := map[string]func(family){
		"nothing":                       func(family) {},
		"its time":                      func(family) { time.Sleep(time.Second) },
		"almost its time":               func(family) { time.Sleep(time.Second - 1) },
		"canceled":                      func(f family) { f.cancel(errEnough) },
		"canceled without a cause":      func(f family) { f.cancel(nil) },
		"canceled twice":                func(f family) { f.cancel(errEnough); f.cancel(errLate) },
		"canceled, then its time":       func(f family) { f.cancel(errEnough); time.Sleep(time.Minute) },
		"its time, then canceled":       func(f family) { time.Sleep(time.Minute); f.cancel(errEnough) },
		"the parent's end":              func(f family) { f.parent(errParent) },
		"the parent's end, canceled":    func(f family) { f.parent(errParent); f.cancel(errEnough) },
		"canceled, the parent's end":    func(f family) { f.cancel(errEnough); f.parent(errParent) },
		"the parent's end, its time":    func(f family) { f.parent(errParent); time.Sleep(time.Minute) },
		"its time, canceled by a child": func(f family) { time.Sleep(time.Minute); childOf(f.ctx)(errEnough) },
	}
	watches := map[string]func(context.Context){
		"nobody":           func(context.Context) {},
		"who waits":        func(ctx context.Context) { _ = ctx.Done() },
		"a child":          func(ctx context.Context) { _ = childOf(ctx) },
		"who takes a look": func(ctx context.Context) { _, _ = ctx.Err(), ctx.Value(key{}) },
	}
	parents := map[string]func(context.Context) context.Context{
		"free":    func(ctx context.Context) context.Context { return ctx },
		"limited": func(ctx context.Context) context.Context { return within(t, ctx, 500*time.Millisecond) },
		"later":   func(ctx context.Context) context.Context { return within(t, ctx, time.Hour) },
	}
	for name, end := range ends {
		for watched, watch := range watches {
			for born, parent := range parents {
				for _, limited := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s, seen by %s, of a %s parent, limited %t", name, watched, born, limited), func(t *testing.T) {
						virtual.Run(t, func(t *testing.T) {
							tell := func(isOurs bool) string {
								p, cancelParent := context.WithCancelCause(context.WithValue(t.Context(), key{}, "kept"))
								defer cancelParent(nil)
								p = parent(p)
								f := family{parent: cancelParent}
								at := time.Time{}
								if limited {
									at = time.Now().Add(time.Second)
								}
								if isOurs {
									c := New(p, at, errLate)
									f.ctx, f.cancel = c, c.Cancel
								} else {
									f.ctx, f.cancel = context.WithCancelCause(p)
									if limited {
										var free context.CancelFunc
										f.ctx, free = context.WithDeadlineCause(f.ctx, at, errLate)
										defer free()
									}
								}
								defer f.cancel(nil)
								watch(f.ctx)
								end(f)
								synctest.Wait()
								return told(f.ctx)
							}
							want := tell(false)
							if got := tell(true); got != want {
								t.Errorf("got %s, want %s", got, want)
							}
						})
					})
				}
			}
		}
	}
}

func within(t *testing.T, ctx context.Context, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(ctx, d)
	t.Cleanup(cancel)
	return ctx
}

func childOf(ctx context.Context) context.CancelCauseFunc {
	_, cancel := context.WithCancelCause(ctx)
	return cancel
}

// told is all that can be learnt of a context.
func told(ctx context.Context) string {
	done := false
	cause, err, value := context.Cause(ctx), ctx.Err(), ctx.Value(key{})
	at, ok := ctx.Deadline()
	select {
	case <-ctx.Done():
		done = true
	default:
	}
	child, cancel := context.WithCancel(ctx)
	defer cancel()
	return fmt.Sprintf("cause %v, error %v, value %v, deadline in %v %t, done %t; its child: %v, %v", cause, err, value, time.Until(at), ok, done, context.Cause(child), child.Err())
}

// Who waits learns of the end when it comes.
func TestWhoWaitsIsToldInTime(t *testing.T) {
	for name, end := range map[string]struct {
		by    func(c *Context)
		cause error
		after time.Duration
	}{
		"its time": {func(*Context) {}, errLate, time.Second},
		"canceled": {func(c *Context) { time.Sleep(time.Millisecond); c.Cancel(errEnough) }, errEnough, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				began := time.Now()
				c := New(t.Context(), began.Add(time.Second), errLate)
				defer c.Cancel(nil)
				go end.by(c)
				<-c.Done()
				if cause, took := context.Cause(c), time.Since(began); !errors.Is(cause, end.cause) || took != end.after {
					t.Errorf("ended by %v after %v, want %v after %v", cause, took, end.cause, end.after)
				}
			})
		})
	}
}

// For a call that does not wait for its end nothing is made, no timer either; the benchmark tells what that saves.
func TestNobodyWaitsNothingIsMade(t *testing.T) {
	c := New(t.Context(), time.Now().Add(time.Hour), errLate)
	if _, _, _ = c.Err(), c.Value(key{}), context.Cause(c); c.made != nil {
		t.Error("a context that nobody waits for was made")
	}
	c.Cancel(nil)
	if c.made != nil {
		t.Error("a context that nobody waits for was made when it was canceled")
	}
}

func BenchmarkCallThatDoesNotLook(b *testing.B) {
	parent, cancel := context.WithCancel(b.Context())
	defer cancel()
	at := time.Now().Add(time.Hour)
	b.Run("deadline", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			New(parent, at, errLate).Cancel(nil)
		}
	})
	b.Run("context", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, stop := context.WithCancelCause(parent)
			_, free := context.WithDeadlineCause(ctx, at, errLate)
			free()
			stop(nil)
		}
	})
}

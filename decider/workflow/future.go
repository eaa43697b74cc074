package workflow

import "github.com/droverhq/drover/decider/workflow/internal/machine"

// Future is a value that is there later: what a call returns, a timer, or a coroutine.
type Future[T any] struct {
	f      *machine.Future
	result func() (T, error) // once f is ready
}

// Get waits until the future is ready, and returns what it has.
func (f *Future[T]) Get(ctx Context) (T, error) {
	if err := ctx.run.m.Wait(f.f.Name, f.f); err != nil {
		var none T
		return none, err
	}
	return f.result()
}

// Ready tells whether Get would return at once.
func (f *Future[T]) Ready() bool { return f.f.Ready() }

// Cancel asks for its end. The future is ready when it has ended, perhaps with a result.
func (f *Future[T]) Cancel() { f.f.Cancel() }

func (f *Future[T]) waitable() machine.Waitable { return f.f }

// Waitable is a [Future] of any type.
type Waitable interface {
	Ready() bool
	waitable() machine.Waitable
	failed() error // once it is ready
}

// All waits until all of them are ready, and returns the error of the first that has one.
func All(ctx Context, futures ...Waitable) error {
	for _, f := range futures {
		if err := ctx.run.m.Wait("all of several", f.waitable()); err != nil {
			return err
		}
	}
	for _, f := range futures {
		if err := f.failed(); err != nil {
			return err
		}
	}
	return nil
}

// First waits until one of them is ready, and returns which: the first in their order. It returns
// the error of the context if that is canceled before; then the number is -1.
func First(ctx Context, futures ...Waitable) (int, error) {
	all := make([]machine.Waitable, 0, len(futures)+1)
	for _, f := range futures {
		all = append(all, f.waitable())
	}
	all = append(all, ctx.scope)
	for {
		for n, w := range all[:len(futures)] {
			if w.Ready() {
				return n, nil
			}
		}
		if err := ctx.scope.Err(); err != nil {
			return -1, err
		}
		if err := ctx.run.m.WaitAny("the first of several", all...); err != nil {
			return -1, err
		}
	}
}

func (f *Future[T]) failed() error {
	_, err := f.result()
	return err
}

// Go runs a function in a coroutine: beside its caller, and never at the same instant. Its future
// has what it returns.
func Go[T any](ctx Context, fn func(Context) (T, error)) *Future[T] {
	f := ctx.run.m.Go(func() (any, error) { return fn(ctx) })
	return &Future[T]{f: f, result: func() (T, error) {
		v, err := f.Value()
		out, _ := v.(T)
		return out, err
	}}
}

// Map calls a function for each item, at most limit at a time, and returns what they return, in the
// order of the items. The first error cancels the others, and is returned once all have ended. A
// limit of 0 is none.
func Map[T, R any](ctx Context, items []T, limit int, fn func(Context, T) (R, error)) ([]R, error) {
	inner, cancel := WithCancel(ctx)
	defer cancel()
	if limit <= 0 || limit > len(items) {
		limit = len(items)
	}
	results := make([]R, len(items))
	var first error
	next := 0
	workers := make([]Waitable, 0, limit)
	for range limit {
		workers = append(workers, Go(inner, func(c Context) (struct{}, error) {
			for next < len(items) && first == nil {
				n := next
				next++
				r, err := fn(c, items[n])
				if results[n] = r; err != nil && first == nil {
					first = err
					cancel()
				}
			}
			return struct{}{}, nil
		}))
	}
	if err := All(ctx, workers...); err != nil {
		return nil, err
	}
	return results, first
}

package workflow

import "github.com/droverhq/drover/decider/workflow/internal/machine"

// Case is one way to go on from [Select]. It may be given to several calls.
type Case struct {
	on     machine.Waitable // nil: the default
	choose func()
	chosen *bool // nil: it may be chosen again
}

// open tells whether there is something to wait for.
func (c Case) open() bool { return c.on != nil && (c.chosen == nil || !*c.chosen) }

// On is ready when a future is. Its function gets what the future has. The case is chosen once, so
// that the results of several futures are taken one by one, as they come:
//
//	for range cases {
//		if err := workflow.Select(ctx, cases...); err != nil { … }
//	}
func On[T any](f *Future[T], do func(T, error)) Case {
	chosen := new(bool)
	return Case{on: f.f, chosen: chosen, choose: func() {
		*chosen = true
		do(f.result())
	}}
}

// Receive is ready when a channel has a value, which its function gets.
func Receive[T any](c *Channel[T], do func(T, error)) Case {
	return Case{on: c.c, choose: func() { do(c.take()) }}
}

// Default is taken if no other case is ready: then Select does not wait.
func Default(do func()) Case { return Case{choose: do} }

// Select waits until a case is ready and runs its function: that of the first case that is. What it
// chooses is taken in the same step, so nothing is lost between the two.
//
// It returns the error of the context if that is canceled before, and ready cases come first.
func Select(ctx Context, cases ...Case) error {
	for {
		all := []machine.Waitable{ctx.scope}
		var otherwise func()
		for _, c := range cases {
			switch {
			case c.on == nil:
				otherwise = c.choose
			case !c.open():
			case c.on.Ready():
				c.choose()
				return nil
			default:
				all = append(all, c.on)
			}
		}
		if err := ctx.scope.Err(); err != nil {
			return err
		}
		if otherwise != nil {
			otherwise()
			return nil
		}
		if err := ctx.run.m.WaitAny("one of several cases", all...); err != nil {
			return err
		}
	}
}

// WaitFor waits until a condition holds. The condition is looked at after each event and whenever
// other coroutines have run; it must only read. WaitFor returns the error of the context if that is
// canceled before.
func WaitFor(ctx Context, condition func() bool) error {
	return ctx.run.m.WaitFor(ctx.scope, condition)
}

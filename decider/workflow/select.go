package workflow

import "github.com/droverhq/drover/decider/workflow/internal/machine"

// Case is one way to go on from [Select]. It may be given to several calls.
type Case struct{ c machine.Case }

// On is ready when a future is. Its function gets what the future has. The case is chosen once, so
// that the results of several futures are taken one by one, as they come:
//
//	for range cases {
//		if err := workflow.Select(ctx, cases...); err != nil { … }
//	}
func On[T any](f *Future[T], do func(T, error)) Case {
	chosen := new(bool)
	return Case{machine.Case{On: f.f, Chosen: chosen, Choose: func() {
		*chosen = true
		do(f.result())
	}}}
}

// Receive is ready when a channel has a value, which its function gets, or is closed.
func Receive[T any](c *Channel[T], do func(T, error)) Case {
	return Case{machine.Case{On: c.c, Choose: func() { do(c.take()) }}}
}

// SendTo is ready when a channel takes a value. Beside [Default], it must have room for that.
func SendTo[T any](c *Channel[T], v T, do func()) Case {
	return Case{machine.Case{To: c.sends(), Value: v, Choose: do}}
}

// Default is taken if no other case is ready: then Select does not wait.
func Default(do func()) Case { return Case{machine.Case{Choose: do}} }

// Select waits until a case is ready and runs its function: that of the first case that is. What it
// chooses is taken in the same step, so nothing is lost between the two.
//
// It returns the error of the context if that is canceled before, and ready cases come first.
func Select(ctx Context, cases ...Case) error {
	all := make([]machine.Case, 0, len(cases))
	for _, c := range cases {
		all = append(all, c.c)
	}
	return ctx.run.m.Select("one of several cases", ctx.scope, all)
}

// WaitFor waits until a condition holds. The condition is looked at after each event and whenever
// other coroutines have run; it must only read. WaitFor returns the error of the context if that is
// canceled before.
func WaitFor(ctx Context, condition func() bool) error {
	return ctx.run.m.WaitFor(ctx.scope, condition)
}

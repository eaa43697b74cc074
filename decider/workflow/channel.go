package workflow

import (
	"errors"
	"fmt"

	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow/internal/machine"
	"github.com/droverhq/drover/schemas"
)

// ErrClosed is what is received from a channel that is closed and has no value any more.
var ErrClosed = errors.New("the channel is closed")

// Channel has values that the code has not received yet, in their order: those of a signal, from the
// beginning of the run on, or what coroutines of a run send to each other.
type Channel[T any] struct {
	c      *machine.Channel
	signal *contract.SignalOf[T] // nil: it is between coroutines
}

// Signals returns the channel of a signal. It has what came before it was asked for, too.
func Signals[T any](ctx Context, s *contract.SignalOf[T]) *Channel[T] {
	return &Channel[T]{c: ctx.run.m.Signals(s.Name()), signal: s}
}

// NewChannel returns a channel between coroutines of a run. It holds n values: who sends more waits
// until one is received. With one value in it, it is a mutex; with n, a semaphore.
func NewChannel[T any](n int) *Channel[T] {
	if n < 0 {
		panic(fmt.Sprintf("NewChannel: room for %d values", n))
	}
	return &Channel[T]{c: machine.NewChannel(n)}
}

// Send sends a value to other coroutines, and waits while there is no room for it. It returns the
// error of the context if that is canceled before. To send to a channel that is closed, or to that
// of a signal, is a mistake: it panics. Signals to other workflows are sent by the function [Send].
func (c *Channel[T]) Send(ctx Context, v T) error {
	return ctx.run.m.Select("room in a channel", ctx.scope,
		[]machine.Case{{To: c.sends(), Value: v, Choose: func() {}}})
}

// Close says that no value follows: who receives gets what is there, and then [ErrClosed].
func (c *Channel[T]) Close() { c.sends().Close() }

// Receive waits for a value. One that is no T is an error, and is gone. It returns the error of the
// context if that is canceled before.
func (c *Channel[T]) Receive(ctx Context) (v T, err error) {
	why := "a value of a channel"
	if c.signal != nil {
		why = "the signal " + c.signal.Name()
	}
	failed := ctx.run.m.Select(why, ctx.scope,
		[]machine.Case{{On: c.c, Choose: func() { v, err = c.take() }}})
	if failed != nil {
		return v, failed
	}
	return v, err
}

// TryReceive returns a value if there is one. Whoever takes what is left before the function returns
// misses no signal: if another one comes in while the run closes, the function is called again.
func (c *Channel[T]) TryReceive() (v T, ok bool, err error) {
	if !c.c.ReadyNow() {
		return v, false, nil
	}
	v, err = c.take()
	return v, !errors.Is(err, ErrClosed), err
}

// Len is how many values are there.
func (c *Channel[T]) Len() int { return c.c.Len() }

func (c *Channel[T]) take() (v T, err error) {
	x, ok := c.c.Take()
	switch {
	case !ok:
		return v, ErrClosed
	case c.signal == nil:
		v, _ = x.(T)
		return v, nil
	}
	p, _ := x.(schemas.Payload)
	if v, err = c.signal.Decode(p); err != nil {
		return v, fmt.Errorf("a signal cannot be read: %w", err)
	}
	return v, nil
}

// sends is the channel for those who send.
func (c *Channel[T]) sends() *machine.Channel {
	if c.signal != nil {
		panic(fmt.Sprintf("a channel of the signal %q gets its values from outside", c.signal.Name()))
	}
	return c.c
}

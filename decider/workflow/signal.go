package workflow

import (
	"fmt"

	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow/internal/machine"
)

// Channel has the values of a signal that the code has not received yet, from the beginning of the
// run on, in their order.
type Channel[T any] struct {
	c      *machine.Channel
	signal *contract.SignalOf[T]
}

// Signals returns the channel of a signal. It has what came before it was asked for, too.
func Signals[T any](ctx Context, s *contract.SignalOf[T]) *Channel[T] {
	return &Channel[T]{c: ctx.run.m.Signals(s.Name()), signal: s}
}

// Receive waits for a value. One that is no T is an error, and is gone. It returns the error of the
// context if that is canceled before.
func (c *Channel[T]) Receive(ctx Context) (T, error) {
	var zero T
	for !c.c.Ready() {
		if err := ctx.scope.Err(); err != nil {
			return zero, err
		}
		if err := ctx.run.m.WaitAny("the signal "+c.signal.Name(), c.c, ctx.scope); err != nil {
			return zero, err
		}
	}
	return c.take()
}

// TryReceive returns a value if there is one.
func (c *Channel[T]) TryReceive() (v T, ok bool, err error) {
	if !c.c.Ready() {
		return v, false, nil
	}
	v, err = c.take()
	return v, true, err
}

// Len is how many values are there.
func (c *Channel[T]) Len() int { return c.c.Len() }

func (c *Channel[T]) take() (T, error) {
	v, err := c.signal.Decode(c.c.Take())
	if err != nil {
		return v, fmt.Errorf("a signal cannot be read: %w", err)
	}
	return v, nil
}

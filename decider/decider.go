package decider

import (
	"context"

	"github.com/droverhq/drover/schemas"
)

// Decider answers decision tasks of one workflow type. Decide is called by many goroutines at once,
// for different runs; after a change of owner even for the same task, of which one answer counts.
//
// Decide must not rely on anything but its task: the next task of the run may go to another
// process. An empty answer is an answer: the run then waits for the next event. An error, or a
// panic, makes the broker ask again with a growing backoff, and park the run after too many; after
// three that wrap [ErrNonDeterministic].
//
// More abilities of a decider are interfaces of their own, found by assertion. This one keeps its
// single method.
type Decider interface {
	Decide(ctx context.Context, t *Task) ([]schemas.Decision, error)
}

// Func is a function that is a [Decider].
type Func func(ctx context.Context, t *Task) ([]schemas.Decision, error)

// Decide implements [Decider].
func (f Func) Decide(ctx context.Context, t *Task) ([]schemas.Decision, error) { return f(ctx, t) }

package decider

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/schemas"
)

// Checker is a [Decider] that can tell whether it agrees with a history. Check decides everything
// again that the history of its task has decided, and compares. The run may be open or have ended.
// An error that wraps [ErrNonDeterministic] says what differs, any other one why it cannot be told.
type Checker interface {
	Check(ctx context.Context, t *Task) error
}

// ErrNoChecker is what [Check] returns for a decider that is no [Checker].
var ErrNoChecker = errors.New("the decider cannot tell whether it agrees with a history")

// Check tells whether a decider agrees with a history, given from its first event on, with all its
// payloads. Nil says that it does. Errors: [ErrNonDeterministic], with what differs; [ErrNoChecker];
// [ErrInvalidTask] of events that are no history from its beginning; what the code does wrong.
func Check(ctx context.Context, d Decider, history []schemas.Event) (err error) {
	c, ok := d.(Checker)
	if !ok {
		return ErrNoChecker
	}
	started := Started(history)
	if started == nil {
		return fmt.Errorf("%w: the history does not begin with WorkflowStarted", ErrInvalidTask)
	}
	for n, e := range history {
		if e.ID != int64(n+1) {
			return fmt.Errorf("%w: event %d of the history has the id %d", ErrInvalidTask, n+1, e.ID)
		}
	}
	t, err := NewTask(schemas.DecisionTask{
		WorkflowID: started.WorkflowID, Run: started.Run, Type: started.WorkflowType,
		TypeVersion: started.WorkflowTypeVersion, StartedID: int64(len(history)), Events: history,
	})
	if err != nil {
		return err
	}
	defer caught(&err)
	return c.Check(ctx, t)
}

package listen

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/natsconn"
)

// untilRefused returns a context that ends with the [*natsconn.RefusedError] when the server does
// not let this user listen to one of the worker's subjects, and with [natsconn.ErrClosed] when the
// connection is closed. It is called before they are subscribed to: the server says so later, of no
// call in particular. A worker that heard only some of its tasks would look healthy, and its runs
// would wait for ever.
func (l *Listener) untilRefused(
	ctx context.Context, fixed map[string]Handler,
) (_ context.Context, end context.CancelCauseFunc) {
	mine := make(map[string]string, 3*len(fixed))
	for typ := range fixed {
		for _, subj := range l.subjects(typ) {
			mine[subj] = typ
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	remove := l.Conn.OnRefused(func(e *natsconn.RefusedError) {
		if typ, ok := mine[e.Subject]; ok && e.Subscribe {
			cancel(&refusedError{what: fmt.Sprintf("type %q", typ), RefusedError: e})
		}
	})
	forget := l.Conn.OnClose(func() { cancel(natsconn.ErrClosed) })
	return ctx, func(cause error) {
		remove()
		forget()
		cancel(cause)
	}
}

// subjects are those that the worker listens to for a type.
func (l *Listener) subjects(typ string) []string {
	if l.Sticky == "" {
		return []string{l.Namespace.Decide(typ)}
	}
	return []string{
		l.Namespace.Decide(typ),
		l.Namespace.DecideSticky(typ, l.Sticky),
		l.Namespace.DecideAlive(typ, l.Sticky),
	}
}

// refusedError says what the refusal is about.
type refusedError struct {
	what string
	*natsconn.RefusedError
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("decider worker: %s: %v: %s", e.what, e.RefusedError, e.Hint())
}

func (e *refusedError) Unwrap() error { return e.RefusedError }

// sourceError is why a source has ended before its worker.
type sourceError struct{ error }

func (e *sourceError) Unwrap() error { return e.error }

var errSourceEnded = errors.New("it ended by itself")

// ended adds to the error of a drain why the listening has ended by itself, if it did.
func ended(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if refused, ok := errors.AsType[*refusedError](cause); ok {
		return errors.Join(refused, err)
	}
	if lacking, ok := errors.AsType[*lackingError](cause); ok {
		return errors.Join(lacking, err)
	}
	if errors.Is(cause, natsconn.ErrClosed) {
		return errors.Join(fmt.Errorf("decider worker: connection: %w", cause), err)
	}
	if e, ok := errors.AsType[*sourceError](cause); ok {
		return errors.Join(fmt.Errorf("decider worker: the source of its types: %w", e.error), err)
	}
	return err
}

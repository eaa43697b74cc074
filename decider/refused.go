package decider

import (
	"context"
	"fmt"

	"github.com/droverhq/drover/broker/natsconn"
)

// untilRefused returns a context that ends with the [*natsconn.RefusedError] when the server does
// not let this user listen to one of the worker's subjects, and with [natsconn.ErrClosed] when the
// connection is closed. It is called before they are subscribed to: the server says so later, of no
// call in particular. A worker that heard only some of its tasks would look healthy, and its runs
// would wait for ever.
func (s *session) untilRefused(
	ctx context.Context,
	deciders map[string]Decider,
) (_ context.Context, end context.CancelCauseFunc) {
	mine := make(map[string]string, 3*len(deciders))
	for typ := range deciders {
		for _, subj := range s.subjects(typ) {
			mine[subj] = typ
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	remove := s.conn.OnRefused(func(e *natsconn.RefusedError) {
		if typ, ok := mine[e.Subject]; ok && e.Subscribe {
			cancel(&refusedError{typ: typ, RefusedError: e})
		}
	})
	forget := s.conn.OnClose(func() { cancel(natsconn.ErrClosed) })
	return ctx, func(cause error) {
		remove()
		forget()
		cancel(cause)
	}
}

// subjects are those that the shift listens to for a type.
func (s *session) subjects(typ string) []string {
	if s.sticky == "" {
		return []string{s.ns.Decide(typ)}
	}
	return []string{
		s.ns.Decide(typ),
		s.ns.DecideSticky(typ, s.sticky),
		s.ns.DecideAlive(typ, s.sticky),
	}
}

// refusedError says which type the refusal is about.
type refusedError struct {
	typ string
	*natsconn.RefusedError
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("decider worker: type %q: %v: %s", e.typ, e.RefusedError, e.Hint())
}

func (e *refusedError) Unwrap() error { return e.RefusedError }

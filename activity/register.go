package activity

import (
	"context"
	"fmt"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// handler is a registered function without its types.
type handler func(ctx context.Context, in schemas.Payload) (schemas.Payload, error)

// Register says what runs for tasks of a type. Input and result travel as JSON, except that
// schemas.Payload and []byte are taken as they are and struct{} means none. An empty input leaves
// In at its zero value. Payloads above schemas.PayloadThreshold are kept in the object store; they
// are fetched before the function is called, and stored when it has returned.
//
// ctx ends when the attempt's time is over, when it is canceled or no longer wanted, and when the
// worker stops; context.Cause tells which. [Info] and [Heartbeat] take it.
//
// The function may run more than once for one activity, unless it was scheduled as not idempotent;
// TaskInfo's IdempotencyKey is then the same each time.
//
// Register panics on mistakes of the program: an empty or repeated type, a nil function, or a
// worker that runs.
func Register[In, Out any](
	w *Worker, typ string, fn func(ctx context.Context, in In) (Out, error),
) {
	if fn == nil {
		panic(fmt.Sprintf("activity: Register(%q): the function is nil", typ))
	}
	w.register(typ, func(ctx context.Context, p schemas.Payload) (schemas.Payload, error) {
		in, err := decode[In](p)
		if err != nil {
			return nil, &Failure{Reason: ReasonBadInput, Details: schemas.Text(err.Error())}
		}
		out, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		result, err := encode(out)
		if err != nil {
			return nil, &Failure{Reason: ReasonBadResult, Details: schemas.Text(err.Error())}
		}
		return result, nil
	})
}

func (w *Worker) register(typ string, h handler) {
	if err := subject.ValidateID("type", typ); err != nil {
		panic(fmt.Sprintf("activity: Register: %v", err))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.running:
		panic(fmt.Sprintf("activity: Register(%q): the worker runs; register before Run", typ))
	case w.handlers[typ] != nil:
		panic(fmt.Sprintf("activity: Register(%q): the type is registered already", typ))
	}
	w.handlers[typ] = h
}

func decode[In any](p schemas.Payload) (in In, err error) {
	switch v := any(&in).(type) {
	case *schemas.Payload:
		*v = p
	case *[]byte:
		*v = p
	case *struct{}:
	default:
		err = p.Decode(&in)
	}
	return in, err
}

func encode(v any) (schemas.Payload, error) {
	switch v := v.(type) {
	case nil, struct{}:
		return nil, nil
	case schemas.Payload:
		return v, nil
	case []byte:
		return v, nil
	}
	return schemas.JSONPayload(v)
}

package schedules

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
)

const (
	// askFor bounds a question; it is asked again within that time if no answer comes, since an
	// owner may have gone with it.
	askFor   = 10 * time.Second
	askEvery = 2 * time.Second
)

// engine is what a scheduler needs of brokers. A refusal of theirs is a [*schemas.Error]; after any
// other error it is unknown what was done.
type engine interface {
	Start(ctx context.Context, q *schemas.StartRequest) (*schemas.StartResponse, error)
	Signal(ctx context.Context, q *schemas.SignalRequest) (*schemas.SignalResponse, error)
	// End asks the run, or the one that has continued it, to end, or terminates it.
	End(ctx context.Context, q *schemas.ExecutionRequest, terminate bool) error
	// Wait returns when the chain of the run has ended; [drover.ErrNotFound] if there is no such
	// run any more.
	Wait(ctx context.Context, wid, run string) (*drover.Outcome, error)
	// Type describes a workflow type; nil if there is none of the name.
	Type(ctx context.Context, name, version string) (*schemas.TypeInfo, error)
}

// brokers are the engine of a namespace.
type brokers struct {
	conn   *natsconn.Conn
	ns     subject.Namespace
	client *drover.Client
}

func (b *brokers) Start(
	ctx context.Context, q *schemas.StartRequest,
) (*schemas.StartResponse, error) {
	return ask(ctx, b, "start", q, func(a *schemas.StartResponse) *schemas.Error { return a.Error })
}

func (b *brokers) Signal(
	ctx context.Context, q *schemas.SignalRequest,
) (*schemas.SignalResponse, error) {
	return ask(ctx, b, "signal", q,
		func(a *schemas.SignalResponse) *schemas.Error { return a.Error })
}

func (b *brokers) End(ctx context.Context, q *schemas.ExecutionRequest, terminate bool) error {
	verb := "cancel"
	if terminate {
		verb = "terminate"
	}
	q.V, q.Chain, q.RequestID = schemas.Version, true, ulid.Make().String()
	_, err := ask(ctx, b, verb, q, func(a *schemas.AckResponse) *schemas.Error { return a.Error })
	if !errors.Is(err, &schemas.Error{Code: schemas.CodeNotFound}) {
		return err
	}
	latest, unknown := b.latest(ctx, q.WorkflowID, q.Run)
	if unknown != nil || latest == "" {
		return cmp.Or(unknown, err)
	}
	again := *q
	again.Run = latest
	_, err = ask(ctx, b, verb, &again,
		func(a *schemas.AckResponse) *schemas.Error { return a.Error })
	return err
}

// Wait follows the chain that the run began. Its first runs may be purged while the last one is
// open.
func (b *brokers) Wait(ctx context.Context, wid, run string) (*drover.Outcome, error) {
	for at := run; ; {
		o, err := b.client.Run(wid, at).Wait(ctx)
		if !errors.Is(err, drover.ErrNotFound) {
			return o, err
		}
		latest, unknown := b.latest(ctx, wid, run)
		if unknown != nil || latest == "" {
			return nil, cmp.Or(unknown, err)
		}
		if latest == at && sleep.For(ctx, firstAskAgain) != nil {
			// it came between the two questions
			return nil, ctx.Err()
		}
		at = latest
	}
}

// latest is the latest run of the chain that a run began; "" if the latest run of the workflow is
// of another chain, or there is none.
func (b *brokers) latest(ctx context.Context, wid, first string) (string, error) {
	d, err := b.client.Run(wid, "").Describe(ctx)
	if errors.Is(err, drover.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if latest := d.Execution.Run; cmp.Or(d.Started.FirstExecutionRun, latest) == first {
		return latest, nil
	}
	return "", nil
}

func (b *brokers) Type(ctx context.Context, name, version string) (*schemas.TypeInfo, error) {
	q := &schemas.TypeRequest{
		V: schemas.Version, Kind: schemas.WorkflowKind, Name: name, Version: version,
	}
	a, err := ask(ctx, b, "typeDescribe", q,
		func(a *schemas.TypeResponse) *schemas.Error { return a.Error })
	if errors.Is(err, &schemas.Error{Code: schemas.CodeNotFound}) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return a.Type, nil
}

func ask[Answer any](
	ctx context.Context, b *brokers, verb string, in any, refusal func(*Answer) *schemas.Error,
) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	out := new(Answer)
	if err := service.Ask(ctx, b.conn, b.ns, verb, askEvery, in, out); err != nil {
		return nil, err
	}
	if e := refusal(out); e != nil {
		return nil, e
	}
	return out, nil
}

// refusedForGood tells whether a request would be refused again. What is not allowed now may be so
// later: a lack of room, or of time.
func refusedForGood(err error) (*schemas.Error, bool) {
	e, ok := errors.AsType[*schemas.Error](err)
	if !ok {
		return nil, false
	}
	switch e.Code {
	case schemas.CodeUnavailable, schemas.CodeTimeout, schemas.CodeLimit, schemas.CodeInternal:
		return e, false
	}
	return e, e.Field != "notAfter" // a repeat is decided upon anew
}

package operations

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	defaultPage = 100
	maxPage     = 1000
	// pageBytes is how many bytes of operations a page has at most, and one operation more.
	pageBytes = 256 << 10
)

// errPageFull ends a scan.
var errPageFull = errors.New("the page is full")

// Run answers the verb operations until ctx is done. It is a task of the master.
func (l *Log) Run(ctx context.Context) error {
	verbs := []service.Verb{{
		Name:  "operations",
		About: "the stream of operations: OperationsRequest → OperationsResponse",
		Serve: service.Answer(l.Page, refuse),
	}}
	stop, err := service.Serve(ctx, service.Options{Conn: l.conn, Namespace: l.ns, Logger: l.log},
		verbs)
	if err != nil {
		return err
	}
	defer stop()
	<-ctx.Done()
	return nil
}

func refuse(_ *ops.OperationsRequest, e *schemas.Error) *ops.OperationsResponse {
	return &ops.OperationsResponse{
		V:          schemas.Version,
		Operations: []ops.OperationEntry{},
		Error:      e,
	}
}

// Page reads a page of the stream. An error is a [*schemas.Error], or that of the stream.
func (l *Log) Page(ctx context.Context, q *ops.OperationsRequest) (*ops.OperationsResponse, error) {
	if err := judge(q); err != nil {
		return nil, err
	}
	limit := q.Limit
	if limit == 0 {
		limit = defaultPage
	}
	limit = min(limit, maxPage)
	o := natsconn.ReadOptions{FilterSubjects: []string{l.ns.AllOperations()}, StartSeq: q.After + 1}
	if q.Kind != "" {
		o.FilterSubjects = []string{l.ns.Operation(string(q.Kind))}
	}
	if q.Latest > 0 {
		var err error
		if o.StartSeq, err = l.latest(ctx, o, q.Latest); err != nil {
			return nil, err
		}
	}
	a := &ops.OperationsResponse{V: schemas.Version, Operations: []ops.OperationEntry{}}
	room := pageBytes
	err := l.conn.Scan(ctx, l.ns.StreamOperations(), o, func(m natsconn.Stored) error {
		room -= len(m.Data)
		if len(a.Operations) == limit || room < 0 && len(a.Operations) > 0 {
			a.After = a.Operations[len(a.Operations)-1].Sequence
			return errPageFull
		}
		e := ops.OperationEntry{Sequence: m.Seq}
		if err := schemas.Unmarshal(m.Data, &e.Operation); err != nil {
			e.Operation = ops.Operation{
				Kind: "unreadable", At: schemas.At(m.Time), Reason: err.Error(),
			}
		}
		e.V = 0
		a.Operations = append(a.Operations, e)
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return nil, err
	}
	return a, nil
}

func judge(q *ops.OperationsRequest) error {
	for _, f := range []struct {
		name  string
		value int
	}{{"latest", q.Latest}, {"limit", q.Limit}} {
		if f.value < 0 {
			return schemas.Errorf(schemas.CodeInvalid, "%s: %d is less than 0", f.name, f.value).
				InField(f.name).WithHint("leave it out, or say how many")
		}
	}
	if q.Kind != "" && !slices.Contains(ops.OperationKinds, q.Kind) {
		return schemas.Errorf(schemas.CodeInvalid, "kind: there is no %q", string(q.Kind)).
			InField("kind").
			WithHint("the kinds are %s", kinds())
	}
	if q.Latest > 0 && q.After > 0 {
		return schemas.Errorf(schemas.CodeInvalid, "latest and after are both given").
			InField("latest").WithHint("leave one out")
	}
	return nil
}

func kinds() string {
	all := make([]string, 0, len(ops.OperationKinds))
	for _, k := range ops.OperationKinds {
		all = append(all, string(k))
	}
	return strings.Join(all, ", ")
}

// latest finds where the latest n operations begin.
func (l *Log) latest(ctx context.Context, o natsconn.ReadOptions, n int) (uint64, error) {
	var last []uint64 // a ring of n sequences
	next := 0
	o.HeadersOnly = true
	err := l.conn.Scan(ctx, l.ns.StreamOperations(), o, func(m natsconn.Stored) error {
		if len(last) < n {
			last = append(last, m.Seq)
			return nil
		}
		last[next] = m.Seq
		next = (next + 1) % n
		return nil
	})
	if err != nil || len(last) == 0 {
		return 1, err
	}
	return last[next%len(last)], nil
}

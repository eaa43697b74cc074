package visibility

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// auditEvery is how often rows are compared with the last records of their runs, and auditRows
	// how many, of all partitions, with auditRest between two.
	auditEvery = time.Hour
	auditRows  = 1000
	auditRest  = 5 * time.Millisecond
)

// auditOn compares some rows now and then until ctx ends. A partition with one that is wrong is
// read anew.
func (x *Index) auditOn(ctx context.Context) {
	for sleep.For(ctx, auditEvery) == nil {
		for _, t := range x.parts {
			if !t.built.Load() {
				continue
			}
			wrong, err := t.audit(ctx, max(auditRows/len(x.parts), 1))
			log := x.o.Logger.WithField("partition", t.p)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				log.WithField("err", err).Warn("rows of the index cannot be compared with records")
			case wrong != "":
				log.WithField("finding", "index-wrong").
					Error("a row of the index is wrong: " + wrong)
				x.o.Note(ctx, ops.Operation{
					Kind: ops.OperationIndexWrong, Subject: x.o.Node, Reason: wrong,
				})
				select {
				case t.wrong <- struct{}{}:
				default:
				}
			}
		}
	}
}

// audit compares random rows with the last records of their runs, and tells what is wrong about
// one, in words; empty if nothing is.
func (t *part) audit(ctx context.Context, most int) (wrong string, err error) {
	store := t.store.Load()
	var some []schemas.Execution
	n := 0
	for r := range store.All {
		x := schemas.Execution{WorkflowID: r.WorkflowID, Run: r.Run}
		if n++; len(some) < most {
			some = append(some, x)
		} else if at := rand.IntN(n); at < most {
			some[at] = x
		}
	}
	whole := len(store.Stats().Refused) == 0
	for _, x := range some {
		if wrong, err := t.auditOne(ctx, x, whole); err != nil || wrong != "" {
			return wrong, err
		}
		if err := sleep.For(ctx, auditRest); err != nil {
			return "", err
		}
	}
	return "", nil
}

// auditOne compares a row. whole says that it has all attributes.
func (t *part) auditOne(ctx context.Context, x schemas.Execution, whole bool) (string, error) {
	m, err := t.x.conn.LastBySubject(
		ctx,
		t.stream,
		t.x.o.Namespace.History(t.p, x.WorkflowID, x.Run),
	)
	if errors.Is(err, natsconn.ErrNotFound) {
		return "", nil // it was purged, which the comparison with subjects finds
	}
	if err != nil {
		return "", err
	}
	l, err := runs.ReadLine(*m)
	if err != nil {
		return "", nil //nolint:nilerr // a row is made of the record before
	}
	position := t.position.Load()
	row, ok := t.store.Load().Get(x.WorkflowID, x.Run)
	if !ok || row.Sequence > m.Seq || row.Sequence < m.Seq && position < m.Seq {
		return "", nil // it has changed since
	}
	if field := differs(&row, rowOf(&l, t.p, m.Seq, row.Reason), whole); field != "" {
		return fmt.Sprintf("%s of run %s of workflow %q, record %d", field, x.Run, x.WorkflowID,
			m.Seq), nil
	}
	return "", nil
}

// nearly is how far the close in a row that was told of may be from that of the record.
const nearly = time.Minute

// differs names what is not the same in two rows of a run; empty if nothing is. The time of the
// close is that of the owner in one and that of the server in the other. With whole unset got may
// lack attributes.
func differs(got, want *query.Row, whole bool) string {
	late := want.Closed.Sub(got.Closed)
	switch {
	case got.Sequence != want.Sequence:
		return "the last record"
	case got.Status != want.Status:
		return "the status"
	case got.Type != want.Type || got.Version != want.Version:
		return "the type"
	case got.Started != want.Started || late > nearly || late < -nearly ||
		(got.Closed == 0) != (want.Closed == 0):
		return "a time"
	case got.Events != want.Events:
		return "the number of events"
	case got.Parent != want.Parent || got.First != want.First || got.StartMode != want.StartMode ||
		got.Schedule != want.Schedule:
		return "the origin"
	case !slices.Equal(got.Tags, want.Tags):
		return "the tags"
	}
	attributes := maps.Clone(want.Attributes)
	maps.DeleteFunc(attributes, func(name, value string) bool {
		_, has := got.Attributes[name]
		return value == "" || !whole && !has
	})
	if !maps.Equal(got.Attributes, attributes) {
		return "the attributes"
	}
	return ""
}

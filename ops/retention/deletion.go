package retention

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// deletePatience is how long a request waits until the janitor has a moment for it.
	deletePatience = 2 * time.Second
	// deleteAtOnce bounds how many requests wait.
	deleteAtOnce = 64
)

// deletion is a request to purge a closed run now.
type deletion struct {
	q    *ops.DeleteRequest
	done chan deleted // has room for the answer
}

type deleted struct {
	a   *ops.DeleteResponse
	err error
}

// serveDelete answers delete until stop is called. It has turns of its own: who waits for a pass
// does not keep others from their answers.
func (j *Janitor) serveDelete(ctx context.Context) (stop func(), err error) {
	return service.Serve(ctx, service.Options{
		Conn: j.o.Conn, Namespace: j.o.Namespace, Logger: j.o.Logger, AtOnce: deleteAtOnce,
	}, []service.Verb{{
		Name:  "delete",
		About: "purge a closed run now: DeleteRequest → DeleteResponse",
		Serve: service.Answer(j.answerDelete, refuseDelete),
	}})
}

func refuseDelete(q *ops.DeleteRequest, e *schemas.Error) *ops.DeleteResponse {
	return &ops.DeleteResponse{V: schemas.Version, WorkflowID: q.WorkflowID, Error: e}
}

// answerDelete hands a request to the goroutine that passes, which serves it between two batches.
func (j *Janitor) answerDelete(
	ctx context.Context, q *ops.DeleteRequest,
) (*ops.DeleteResponse, error) {
	if err := named(q.WorkflowID); err != nil {
		return nil, err
	}
	d := &deletion{q: q, done: make(chan deleted, 1)}
	patience, cancel := context.WithTimeout(ctx, deletePatience)
	defer cancel()
	select {
	case j.asked <- d:
	case <-patience.Done():
		return nil, schemas.Errorf(schemas.CodeUnavailable,
			"the master has no moment for it now").About(q.WorkflowID, q.Run).
			WithHint("ask again; after a change of the master it reads all histories first")
	}
	select {
	case r := <-d.done:
		return r.a, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// deleteAsked serves the requests that wait, without waiting for any. The caller holds passing and
// purging.
func (j *Janitor) deleteAsked(ctx context.Context) {
	for {
		select {
		case d := <-j.asked:
			a, err := j.delete(ctx, d.q)
			d.done <- deleted{a, err}
		default:
			return
		}
	}
}

// deleteFirst serves a request, and those that have come meanwhile.
func (j *Janitor) deleteFirst(ctx context.Context, d *deletion) {
	j.passing.Lock()
	defer j.passing.Unlock()
	if !j.purging.TryLock() {
		d.done <- deleted{err: schemas.Errorf(schemas.CodeUnavailable, "nothing may be purged now: "+
			"the master looks for large payloads that nothing names").
			About(d.q.WorkflowID, d.q.Run).WithHint("ask again in a minute")}
		return
	}
	defer j.purging.Unlock()
	a, err := j.delete(ctx, d.q)
	d.done <- deleted{a, err}
	j.deleteAsked(ctx)
}

// Delete purges a closed run now, whatever its retention says, and with it what goes before it. It
// may not go earlier than a pass may purge it. An error is of type [*schemas.Error], or that of a
// stream.
func (j *Janitor) Delete(ctx context.Context, q *ops.DeleteRequest) (*ops.DeleteResponse, error) {
	if err := named(q.WorkflowID); err != nil {
		return nil, err
	}
	d := &deletion{q: q, done: make(chan deleted, 1)}
	j.deleteFirst(ctx, d)
	r := <-d.done
	return r.a, r.err
}

// delete is Delete. The caller holds passing and purging.
func (j *Janitor) delete(ctx context.Context, q *ops.DeleteRequest) (*ops.DeleteResponse, error) {
	if j.o.Holds() {
		return nil, schemas.Errorf(schemas.CodeUnavailable, "nothing may be purged now: the start "+
			"of a run may be repeated").About(q.WorkflowID, q.Run).WithHint("ask again in a minute")
	}
	p := subject.Partition(q.WorkflowID, j.o.Partitions)
	subj := j.o.Namespace.HistoryOfWorkflow(p, q.WorkflowID)
	if q.Run != "" {
		subj = j.o.Namespace.History(p, q.WorkflowID, q.Run)
	}
	m, err := j.o.Conn.LastBySubject(ctx, j.o.Namespace.StreamHistory(p), subj)
	if errors.Is(err, natsconn.ErrNotFound) {
		return j.deleteSoft(q)
	}
	if err != nil {
		return nil, err
	}
	l, err := runs.ReadLine(*m)
	if err != nil {
		return nil, schemas.Errorf(schemas.CodeConflict, "the headers of its last record cannot "+
			"be read: %v", err).About(q.WorkflowID, q.Run).WithHint("see what drover verify says")
	}
	if !l.Status.Closed() {
		return nil, schemas.Errorf(schemas.CodeConflict,
			"run %s is open, and only closed runs can be deleted", l.Run).
			About(l.WorkflowID, l.Run).
			WithHint("end it first: drover cancel asks it to, drover terminate does not ask")
	}
	if err := j.follow(ctx); err != nil { // what goes with it is known then
		return nil, err
	}
	k, err := j.kinOf(ctx, l.Parent)
	if err != nil {
		return nil, err
	}
	if k.open != "" {
		return nil, schemas.Errorf(schemas.CodeConflict,
			"run %s, which is above it, is open", k.open).About(l.WorkflowID, l.Run).
			WithHint("delete it when that has closed")
	}
	e := entry{closed: m.Time.UnixNano(), seq: m.Seq, partition: int32(p), id: idOf(l.Run)}
	return j.deleteClosed(ctx, q, e, &l)
}

func (j *Janitor) deleteClosed(
	ctx context.Context, q *ops.DeleteRequest, e entry, l *line,
) (*ops.DeleteResponse, error) {
	now, err := j.serverTime(ctx)
	if err != nil {
		return nil, err
	}
	var why string
	k := &look{
		j: j, now: now, checkpoints: map[int]schemas.Checkpoint{}, hard: true,
		stays: func(because string) { why = because },
	}
	n, gone, err := j.purgeBatch(ctx, k, int(e.partition), []entry{e})
	if len(gone) > 0 {
		j.cut(e, l)
	}
	switch {
	case err != nil:
		return nil, err
	case len(gone) > 0 && n == 0: // somebody else purged it
		return j.deleteSoft(q)
	case len(gone) == 0:
		return nil, schemas.Errorf(schemas.CodeConflict, "run %s may not go yet: %s", l.Run, why).
			About(l.WorkflowID, l.Run).WithHint("nothing is lost by asking again later")
	}
	if q.Job == "" {
		j.o.Note(ctx, ops.Operation{
			Kind: ops.OperationRunDeleted, Subject: l.WorkflowID, WorkflowID: l.WorkflowID,
			Run: l.Run, Count: int64(n), Identity: q.Identity, Reason: q.Reason,
		})
	}
	return &ops.DeleteResponse{
		V: schemas.Version, WorkflowID: l.WorkflowID, Run: l.Run, Runs: n,
	}, nil
}

// deleteSoft forgets a run that is on disk no more.
func (j *Janitor) deleteSoft(q *ops.DeleteRequest) (*ops.DeleteResponse, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.soft.get(q.WorkflowID, q.Run)
	if r == nil {
		return nil, schemas.Errorf(schemas.CodeNotFound, "workflow %q has no such history: it was "+
			"never started, or is purged", q.WorkflowID).InField("workflowId").
			About(q.WorkflowID, q.Run).WithHint("see what there is with: drover list")
	}
	j.unsoften(r.entry)
	return &ops.DeleteResponse{
		V: schemas.Version, WorkflowID: r.line.WorkflowID, Run: r.line.Run, Runs: 1, Soft: true,
	}, nil
}

// cut forgets a run that was deleted, so that it does not count among those that it was judged
// with. What it had said of their retention holds for them until all older ones are gone.
func (j *Janitor) cut(e entry, l *line) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if at, found := slices.BinarySearchFunc(j.due, e, byPlace); found {
		j.unsoften(j.due[at])
		j.due = slices.Delete(j.due, at, at+1)
	}
	for _, part := range []bool{false, true} {
		if part && l.Parent == nil {
			continue
		}
		if g := j.index.groups[memberOf(e, l, part).key]; g != nil {
			j.index.cut(g, e)
		}
	}
}

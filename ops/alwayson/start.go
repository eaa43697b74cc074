package alwayson

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// startEvery is after how long a start is sent again that nobody has answered. It is a repeat.
const startEvery = time.Second

// start sends the start of the record's run. It tells whether it began the run: not if this repeats
// an earlier one. Refusals are of type [*schemas.Error].
func (m *Monitor) start(ctx context.Context, r *record) (began bool, err error) {
	select {
	case m.turns <- struct{}{}:
		defer func() { <-m.turns }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	q := r.AlwaysOn.Start
	q.V, q.Run, q.StartMode, q.NotAfter = schemas.Version, r.Run, schemas.ModeAutoStart,
		schemas.At(r.latest())
	q.IDConflictPolicy = schemas.ConflictFail
	if err := m.before("start " + r.id()); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var a schemas.StartResponse
	if err := service.Ask(ctx, m.o.Conn, m.o.Namespace, "start", startEvery, &q, &a); err != nil {
		return false, err
	}
	if a.Error != nil {
		return false, a.Error
	}
	return a.Started, nil
}

// begin has the record's run begun, and tells whether that is settled: it was begun, now or before,
// or cannot begin any more. If it was refused or another run is open, the record says so, and
// nothing is settled.
func (k *keeper) begin(ctx context.Context, r *record, rev uint64) (settled bool, err error) {
	if r.Found || k.begun == r.Run {
		return true, nil
	}
	began, err := k.m.start(ctx, r)
	if err == nil {
		k.begun = r.Run
		if began && r.Starts > 1 {
			k.m.note(ctx, ops.OperationAlwaysRestarted, r, "", string(r.Status))
		}
		return true, nil
	}
	refusal, refused := errors.AsType[*schemas.Error](err)
	if ctx.Err() != nil || errorsIsCrash(err) {
		return false, err
	}
	if refused && refusal.Code == schemas.CodeAlreadyStarted && refusal.Run != "" &&
		refusal.Run != r.Run {
		k.begun = r.Run // it cannot begin beside the other, which is judged by whose chain it is of
		return true, nil
	}
	now, timeErr := k.m.now(ctx)
	switch {
	case timeErr != nil:
		return false, timeErr
	case now.After(r.latest()): // whatever it was refused for: it cannot begin any more
		k.begun = r.Run
		return true, nil
	case !refused, refusal.Code == schemas.CodeUnavailable, refusal.Code == schemas.CodeTimeout:
		return false, err
	}
	return false, k.closed(ctx, r, rev, func(r *record, now time.Time) { r.refuses(refusal, now) })
}

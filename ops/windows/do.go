package windows

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/ops/schedules"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

// Why a window has started nothing. They stand in its key, and in the state of its schedule.
const (
	reasonMissed  = "no trigger came through: no node lived at any of them"
	reasonPaused  = "the schedule is paused"
	reasonDeleted = "the schedule was deleted before the start came through"
	reasonTaken   = "the period had its run before the times were changed"
	reasonLate    = "nobody could carry out the start in time"
)

// giveUp is how long a node repeats a start that nobody carries out.
const giveUp = time.Hour

// do carries out a task. After an error the same task is planned again.
func (w *Windows) do(ctx context.Context, t *task) error {
	switch {
	case t.mend != nil:
		return w.carryOut(ctx, t.rec, t.key, t.mend.rec, t.mend.rev,
			t.mend.tried.Sub(t.mend.first) >= giveUp)
	case t.begin != nil:
		return w.begin(ctx, t)
	case t.missed != nil:
		return w.miss(ctx, t)
	case t.settle != nil:
		if rec := w.table.record(windowKey(t.rec.Schedule.ID, t.rec.Incarnation, t.settle.Period)); rec != nil {
			return w.settle(ctx, t.rec, t.settle, rec, 0)
		}
	}
	return nil
}

// begin takes the period of a window, and starts its run. Nothing happens if another node has it.
func (w *Windows) begin(ctx context.Context, t *task) error {
	now, err := w.serverTime(ctx)
	if err != nil {
		return err
	}
	if !now.Before(t.begin.Closes) {
		return nil
	}
	key, mine := w.periodOf(t.rec, t.begin, now)
	if s := t.rec.Schedule.Action.Start; s != nil {
		mine.WorkflowID, mine.Run = schedules.WorkflowID(t.rec, mine.Slot), runOf(w.o.Namespace,
			t.rec, t.begin)
	}
	rev, taken, err := w.create(ctx, t.rec, key, mine, t.begin)
	if err != nil || taken {
		return err
	}
	return w.carryOut(ctx, t.rec, key, mine, rev, false)
}

// periodOf is a new key of a window of this node.
func (w *Windows) periodOf(
	rec *ops.ScheduleRecord, at *calendar.Trigger, now time.Time,
) (key string, mine *ops.PeriodRecord) {
	return windowKey(rec.Schedule.ID, rec.Incarnation, at.Period), &ops.PeriodRecord{
		V: schemas.Version, Name: rec.Schedule.ID, Period: at.Period, Caller: w.o.Node,
		At: schemas.At(now), Slot: schemas.At(at.Opens), Identity: w.o.Node,
	}
}

// create creates the key of a window; taken tells that it exists.
func (w *Windows) create(
	ctx context.Context, rec *ops.ScheduleRecord, key string, mine *ops.PeriodRecord,
	at *calendar.Trigger,
) (rev uint64, taken bool, err error) {
	body, err := schemas.MarshalJSON(mine)
	if err != nil {
		return 0, false, err
	}
	if err := w.o.Before("create " + key); err != nil {
		return 0, false, err
	}
	rev, err = w.o.Conn.KVCreate(ctx, w.o.Namespace.BucketSchedules(), key, body,
		windowLife(rec.Schedule.Window, at.Opens))
	switch {
	case errors.Is(err, natsconn.ErrWrongSequence):
		return 0, true, nil // the watch brings it
	case err != nil:
		return 0, false, fmt.Errorf("windows: schedule %q: %w", rec.Schedule.ID, err)
	}
	w.table.wrote(key, mine, rev)
	return rev, false, nil
}

// carryOut starts the run of a period, or sends its signal, and marks the key. Of a schedule that
// is gone only the key is marked. The last try marks it in any case.
func (w *Windows) carryOut(
	ctx context.Context, rec *ops.ScheduleRecord, key string, period *ops.PeriodRecord, rev uint64,
	last bool,
) error {
	now, err := w.serverTime(ctx)
	if err != nil {
		return err
	}
	refusal := reasonDeleted
	if rec != nil {
		if err := w.o.Before("start " + key); err != nil {
			return err
		}
		if refusal, err = w.act(ctx, rec, key, period, now); err != nil && !last {
			return err
		}
		if err != nil {
			refusal = fmt.Sprintf("%s: %v", reasonLate, err)
		}
	}
	marked := *period
	marked.Started, marked.Refusal = true, refusal
	body, err := schemas.MarshalJSON(&marked)
	if err != nil {
		return err
	}
	if err := w.o.Before("mark " + key); err != nil {
		return err
	}
	ttl := leastLife
	if rec != nil {
		ttl = windowLife(rec.Schedule.Window, now)
	}
	rev, err = w.o.Conn.KVUpdate(ctx, w.o.Namespace.BucketSchedules(), key, body, rev, ttl)
	switch {
	case errors.Is(err, natsconn.ErrWrongSequence):
		return nil // another node has marked it
	case err != nil:
		return fmt.Errorf("windows: mark %s: %w", key, err)
	}
	w.table.wrote(key, &marked, rev)
	w.table.wake()
	return nil
}

// miss counts windows of which no trigger came through, the latest of them once its key is this
// node's: nobody else can begin it then.
func (w *Windows) miss(ctx context.Context, t *task) error {
	now, err := w.serverTime(ctx)
	if err != nil {
		return err
	}
	key, mine := w.periodOf(t.rec, t.missed, now)
	mine.Started, mine.Refusal = true, reasonMissed
	if t.paused {
		mine.Refusal = reasonPaused
	}
	if now.Sub(t.missed.Closes) < leastLife {
		if _, taken, err := w.create(ctx, t.rec, key, mine, t.missed); err != nil || taken {
			return err
		}
	}
	return w.settle(ctx, t.rec, t.missed, mine, t.before)
}

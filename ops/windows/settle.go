package windows

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/bucketkey"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

// recent is how many slots the state of a schedule shows.
const recent = 20

// record returns the key of a period as it is known; nil if there is none.
func (t *table) record(key string) *ops.PeriodRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.periods[key]; h != nil {
		return h.rec
	}
	return nil
}

// settle counts a window in the state of its schedule, and before it so many others that were
// missed. Each is counted once: the state has the last one that is counted, and is written by
// compare-and-set.
func (w *Windows) settle(
	ctx context.Context, rec *ops.ScheduleRecord, at *calendar.Trigger, period *ops.PeriodRecord,
	before int64,
) error {
	bucket, id := w.o.Namespace.BucketSchedules(), bucketkey.Escape(rec.Schedule.ID)
	key := schedulePrefix + id + stateSuffix
	value, rev, err := w.o.Conn.KVLast(ctx, bucket, key)
	if err != nil {
		return fmt.Errorf("windows: schedule %q: %w", rec.Schedule.ID, err)
	}
	state := &ops.ScheduleState{}
	if value != nil {
		if err := schemas.Unmarshal(value, state); err != nil {
			return fmt.Errorf("windows: the state of schedule %q is damaged: %w",
				rec.Schedule.ID, err)
		}
	}
	if state.Incarnation != rec.Incarnation {
		state = &ops.ScheduleState{
			Incarnation: rec.Incarnation, Remaining: rec.Schedule.Remaining, Updates: rec.Updates,
		}
	}
	if state.Updates != rec.Updates {
		state.Remaining, state.Updates = rec.Schedule.Remaining, rec.Updates
	}
	if state.LastSlot != 0 && !at.Opens.After(state.LastSlot.Time()) {
		w.table.counted(id, state)
		return nil
	}
	slot := count(rec, state, at, period, before)
	body, err := schemas.MarshalJSON(state)
	if err != nil {
		return err
	}
	if err := w.o.Before("count " + key); err != nil {
		return err
	}
	if _, err = w.o.Conn.KVUpdate(ctx, bucket, key, body, rev, 0); err != nil {
		if errors.Is(err, natsconn.ErrWrongSequence) {
			return nil // another node did, or counts another one: the plan asks again
		}
		return fmt.Errorf("windows: schedule %q: %w", rec.Schedule.ID, err)
	}
	w.table.counted(id, state)
	w.note(ctx, rec, slot, before)
	return nil
}

// count adds a window to a state.
func count(
	rec *ops.ScheduleRecord, state *ops.ScheduleState, at *calendar.Trigger,
	period *ops.PeriodRecord, before int64,
) ops.ScheduleSlot {
	slot := ops.ScheduleSlot{
		Slot: schemas.At(at.Opens), At: period.At, WorkflowID: period.WorkflowID, Run: period.Run,
		Reason: period.Refusal,
	}
	switch {
	case period.Slot != schemas.At(at.Opens): // the key is that of another window of the period
		slot = ops.ScheduleSlot{
			Slot:    slot.Slot,
			At:      slot.Slot,
			Outcome: ops.SlotSkipped,
			Reason:  reasonTaken,
		}
		state.Counts.Skipped++
	case period.Refusal == "" && rec.Schedule.Action.Signals():
		slot.Outcome = ops.SlotDone
		state.Counts.Started++
		state.Counts.Done++
		state.LastDone = slot.Slot
	case period.Refusal == "":
		slot.Outcome = ops.SlotRunning
		state.Counts.Started++
		state.Running = append(state.Running, slot)
	case period.Refusal == reasonPaused:
		slot.Outcome = ops.SlotSkipped
		state.Counts.Skipped += 1 + before
	case period.Refusal == reasonMissed:
		slot.Outcome = ops.SlotMissed
		state.Counts.Missed += 1 + before
	default:
		slot.Outcome = ops.SlotRefused
		state.Counts.Refused++
	}
	if n := state.Remaining; n != nil && *n > 0 && period.Slot == slot.Slot &&
		period.Refusal != reasonPaused && period.Refusal != reasonMissed {
		left := *n - 1
		state.Remaining = &left
	}
	state.V, state.LastSlot = schemas.Version, slot.Slot
	if slot.Outcome == ops.SlotRunning {
		return slot // the scheduler of the master tells how it ends
	}
	state.Recent = append([]ops.ScheduleSlot{slot},
		state.Recent[:min(len(state.Recent), recent-1)]...)
	return slot
}

// note tells people of a window that has started nothing though it should have.
func (w *Windows) note(
	ctx context.Context, rec *ops.ScheduleRecord, slot ops.ScheduleSlot, before int64,
) {
	o := ops.Operation{
		Subject: rec.Schedule.ID, Reason: slot.Reason, Slot: slot.Slot, WorkflowID: slot.WorkflowID,
		Run: slot.Run,
	}
	switch slot.Outcome {
	case ops.SlotMissed:
		o.Kind, o.Count = ops.OperationWindowMissed, 1+before
	case ops.SlotRefused:
		o.Kind = ops.OperationSlotRefused
	default:
		return
	}
	w.operations.Note(ctx, o)
}

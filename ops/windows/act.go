package windows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/runid"
	"github.com/droverhq/drover/ops/schedules"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

const (
	// actLimit is how long an owner may take to answer.
	actLimit = 5 * time.Second
	// valid is how long a start holds that was sent: an owner refuses one that comes later.
	valid = time.Minute
)

// runOf is the run id of a window: the same for all who start it.
func runOf(ns subject.Namespace, rec *ops.ScheduleRecord, at *calendar.Trigger) string {
	return runid.Of(at.Opens.UnixMilli(), windowSeed(ns, rec, at.Period))
}

// windowSeed tells the periods of all schedules apart, of those that were deleted too.
func windowSeed(ns subject.Namespace, rec *ops.ScheduleRecord, period string) string {
	return string(ns) + "." + windowKey(rec.Schedule.ID, rec.Incarnation, period)
}

// act starts the run that a key names, or sends the signal of its schedule. It may be repeated.
// refusal says why the service will never do it; an error is to be tried again.
func (w *Windows) act(
	ctx context.Context, rec *ops.ScheduleRecord, key string, period *ops.PeriodRecord,
	now time.Time,
) (refusal string, err error) {
	ctx, cancel := context.WithTimeout(ctx, actLimit)
	defer cancel()
	action := &rec.Schedule.Action
	switch {
	case period.Run != "" && action.Start != nil:
		err = w.start(ctx, rec, period, now)
	case period.Run == "" && action.Signal != nil:
		err = w.signal(ctx, rec, key, period)
	default:
		return "the action of the schedule was changed before it came through", nil
	}
	if e, ok := errors.AsType[*schemas.Error](err); ok && !transient(e) {
		return e.Error(), nil
	}
	return "", err
}

// transient tells whether it helps to ask again later.
func transient(e *schemas.Error) bool {
	switch e.Code {
	case schemas.CodeUnavailable, schemas.CodeTimeout, schemas.CodeLimit, schemas.CodeInternal:
		return true
	}
	return e.Field == "notAfter" // nothing has begun, and a repeat has more time
}

func (w *Windows) start(
	ctx context.Context, rec *ops.ScheduleRecord, period *ops.PeriodRecord, now time.Time,
) error {
	q := *rec.Schedule.Action.Start
	q.V, q.WorkflowID, q.Run, q.RequestID = schemas.Version, period.WorkflowID, period.Run, period.Run
	q.StartMode, q.NotAfter = schemas.ModeSchedule, schemas.At(now.Add(valid))
	q.Identity = cmp.Or(q.Identity, "schedule "+rec.Schedule.ID)
	q.Attributes = maps.Clone(q.Attributes)
	if q.Attributes == nil {
		q.Attributes = map[string]string{}
	}
	q.Attributes["schedule"], q.Attributes["slot"] = rec.Schedule.ID,
		schedules.SlotText(period.Slot)
	var err error
	if q.Input, err = w.fill(rec, q.Input, period); err != nil {
		return err
	}
	if q.Signal != nil {
		signal := *q.Signal
		if signal.Input, err = w.fill(rec, signal.Input, period); err != nil {
			return err
		}
		q.Signal = &signal
	}
	var a schemas.StartResponse
	if err := w.ask(ctx, "start", &q, &a); err != nil {
		return err
	}
	if a.Error != nil {
		return a.Error
	}
	return nil
}

func (w *Windows) signal(
	ctx context.Context, rec *ops.ScheduleRecord, key string, period *ops.PeriodRecord,
) error {
	q := *rec.Schedule.Action.Signal
	q.V, q.RequestID = schemas.Version, runid.Of(0, windowSeed(w.o.Namespace, rec, period.Period))
	var err error
	if q.Input, err = w.fill(rec, q.Input, period); err != nil {
		return err
	}
	var a schemas.SignalResponse
	if err := w.ask(ctx, "signal", &q, &a); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if a.Error != nil {
		return a.Error
	}
	return nil
}

// fill puts the slot, and what is known of the last one, into an input.
func (w *Windows) fill(
	rec *ops.ScheduleRecord, input schemas.Payload, period *ops.PeriodRecord,
) (schemas.Payload, error) {
	filled, err := schedules.Fill(input, period.Slot, w.table.state(rec))
	if err != nil {
		return nil, schemas.Errorf(schemas.CodeInvalid, "the input cannot be filled in: %v", err)
	}
	return filled, nil
}

func (w *Windows) ask(ctx context.Context, verb string, q, a any) error {
	return service.Ask(ctx, w.o.Conn, w.o.Namespace, verb, actLimit/2, q, a)
}

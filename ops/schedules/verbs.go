package schedules

import (
	"context"
	"time"

	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// tries bounds how often a change is made anew because somebody else has made one meanwhile.
	tries = 5
	// verbLimit bounds the work on a request.
	verbLimit = 20 * time.Second
	// warnTimes is how many of the next times a creation tells.
	warnTimes = 5
)

// verbs are what is answered while this node is the master.
func (t *turn) verbs() []service.Verb {
	return []service.Verb{
		{
			Name:  "scheduleCreate",
			About: "make a schedule: ScheduleCreateRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.create), refuse),
		},
		{
			Name:  "scheduleUpdate",
			About: "change a schedule: ScheduleUpdateRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.update), refuse),
		},
		{
			Name:  "schedulePause",
			About: "pause a schedule: ScheduleRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.pause), refuse),
		},
		{
			Name:  "scheduleResume",
			About: "resume a schedule: ScheduleRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.resume), refuse),
		},
		{
			Name:  "scheduleTrigger",
			About: "do the action of a schedule now: ScheduleTriggerRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.trigger), refuse),
		},
		{
			Name:  "scheduleBackfill",
			About: "do slots of the past: ScheduleBackfillRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.backfill), refuse),
		},
		{
			Name:  "scheduleDelete",
			About: "delete a schedule: ScheduleRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.remove), refuse),
		},
		{
			Name:  "scheduleShow",
			About: "a schedule, what it has done, and its next times: ScheduleRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.show), refuse),
		},
		{
			Name:  "scheduleList",
			About: "schedules by their ids: ScheduleListRequest → ScheduleListResponse",
			Serve: service.Answer(bounded(t.list), refuseList),
		},
	}
}

func refuse[Q any](_ *Q, e *schemas.Error) *ops.ScheduleResponse {
	return &ops.ScheduleResponse{V: schemas.Version, Error: e}
}

func refuseList(_ *ops.ScheduleListRequest, e *schemas.Error) *ops.ScheduleListResponse {
	return &ops.ScheduleListResponse{
		V:         schemas.Version,
		Schedules: []ops.ScheduleLine{},
		Error:     e,
	}
}

func bounded[Q, A any](
	do func(context.Context, *Q) (*A, error),
) func(context.Context, *Q) (*A, error) {
	return func(ctx context.Context, q *Q) (*A, error) {
		ctx, cancel := context.WithTimeout(ctx, verbLimit)
		defer cancel()
		return do(ctx, q)
	}
}

// with calls fn with a schedule, and has it served then. Fn is called again if somebody else has
// changed the schedule.
func (t *turn) with(
	ctx context.Context, id string, fn func(e *entry) (*ops.ScheduleResponse, error),
) (*ops.ScheduleResponse, error) {
	if err := checkID("id", id); err != nil {
		return nil, err
	}
	e := t.entry(id)
	if e == nil {
		return nil, notFound(id)
	}
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	a, err := t.inside(e, fn)
	e.leave()
	t.kick(e)
	return a, err
}

func (t *turn) inside(
	e *entry, fn func(e *entry) (*ops.ScheduleResponse, error),
) (a *ops.ScheduleResponse, err error) {
	for range tries {
		if e.stale && !e.gone {
			if err := t.reload(e); err != nil {
				return nil, err
			}
		}
		if e.gone {
			return nil, notFound(e.id)
		}
		if a, err = fn(e); !changed(err) {
			return a, err
		}
	}
	return nil, err
}

func notFound(id string) error {
	return schemas.Errorf(schemas.CodeNotFound, "there is no schedule %q", id).InField("id").
		WithHint("see what there is with: drover schedule list")
}

// whole calls fn with a schedule that can be read.
func whole(
	fn func(e *entry) (*ops.ScheduleResponse, error),
) func(e *entry) (*ops.ScheduleResponse, error) {
	return func(e *entry) (*ops.ScheduleResponse, error) {
		if e.damage != "" {
			return nil, schemas.Errorf(schemas.CodeConflict, "schedule %q is damaged: %s",
				e.id, e.damage).InField("id").
				WithHint("delete it and make it anew: drover schedule delete")
		}
		return fn(e)
	}
}

package drover

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// CreateSchedule makes a schedule, and tells its next times and what may not be meant. Its id must
// not be in use.
//
// Errors: [ErrInvalid], which names the field; [ErrAlreadyExists] if there is another schedule of
// the id; [ErrNotFound] or [ErrDeprecated] if the type of its workflows may not be started;
// [ErrLimit], [ErrUnavailable], [ErrTimeout].
func (c *Client) CreateSchedule(
	ctx context.Context, s ops.Schedule,
) (*ops.ScheduleResponse, error) {
	return c.schedule(ctx, "scheduleCreate", &ops.ScheduleCreateRequest{
		V: schemas.Version, Schedule: s, RequestID: ulid.Make().String(), Identity: c.name,
	})
}

// UpdateSchedule replaces a schedule, whose id is that of s. Its counters stay, and slots are taken
// from now on. revision is that of the schedule which was read before ([Client.ShowSchedule]); 0
// replaces it in any case.
//
// Errors: those of [Client.CreateSchedule]; [ErrNotFound]; [ErrConflict] if somebody has changed it
// since the revision: read it again.
func (c *Client) UpdateSchedule(
	ctx context.Context, s ops.Schedule, revision uint64,
) (*ops.ScheduleResponse, error) {
	return c.schedule(ctx, "scheduleUpdate", &ops.ScheduleUpdateRequest{
		V: schemas.Version, Schedule: s, Revision: revision, Identity: c.name,
	})
}

// ShowSchedule tells what a schedule is, what it has done, and its next times: so many of them as
// next says, 10 for 0, and at most 1,000. Errors: [ErrNotFound], [ErrInvalid], [ErrUnavailable],
// [ErrTimeout].
func (c *Client) ShowSchedule(
	ctx context.Context, id string, next int,
) (*ops.ScheduleResponse, error) {
	return c.schedule(ctx, "scheduleShow",
		&ops.ScheduleRequest{V: schemas.Version, ID: id, Next: next})
}

// SchedulesOptions filter [Client.Schedules]. Empty fields match all.
type SchedulesOptions struct {
	// Prefix is how the id begins.
	Prefix string
	// Limit ends the list after so many schedules. Defaults to 0, all of them.
	Limit int
}

// Schedules yields schedules in the order of their ids. The sequence ends with the last one, or
// with an error, which is its last value.
func (c *Client) Schedules(
	ctx context.Context, o SchedulesOptions,
) iter.Seq2[ops.ScheduleLine, error] {
	q := query{verb: "scheduleList"}
	fetch := func(cursor string, size int) ([]ops.ScheduleLine, string, error) {
		req := &ops.ScheduleListRequest{
			V: schemas.Version, Prefix: o.Prefix, Limit: size, Cursor: cursor,
		}
		page, err := call(ctx, c, q, req,
			func(a *ops.ScheduleListResponse) *schemas.Error { return a.Error })
		if err != nil {
			return nil, "", err
		}
		return page.Schedules, page.Cursor, nil
	}
	return pages(q, o.Limit, fetch)
}

// PauseSchedule pauses a schedule until the instant, or until it is resumed if that is the zero
// time. Its slots are counted as skipped meanwhile, and its open runs go on. Errors: [ErrNotFound],
// [ErrInvalid], [ErrUnavailable], [ErrTimeout].
func (c *Client) PauseSchedule(
	ctx context.Context, id string, until time.Time, reason string,
) (*ops.ScheduleResponse, error) {
	return c.schedule(ctx, "schedulePause", &ops.ScheduleRequest{
		V: schemas.Version, ID: id, Until: schemas.At(until), Reason: reason, Identity: c.name,
	})
}

// ResumeSchedule ends a pause. Errors: those of [Client.PauseSchedule].
func (c *Client) ResumeSchedule(
	ctx context.Context, id, reason string,
) (*ops.ScheduleResponse, error) {
	return c.schedule(ctx, "scheduleResume", &ops.ScheduleRequest{
		V: schemas.Version, ID: id, Reason: reason, Identity: c.name,
	})
}

// SlotOptions are about slots that somebody asks for: [Client.TriggerSchedule] and
// [Client.BackfillSchedule].
type SlotOptions struct {
	// Overlap is the policy of these slots. Defaults to that of the schedule, and of a backfill to
	// bufferAll.
	Overlap ops.OverlapPolicy
	// RequestID makes the request idempotent beyond this call. Defaults to a new one for each call.
	RequestID string
	// Reason says why, for the stream of operations.
	Reason string
}

// TriggerSchedule does the action of a schedule now; nil options mean all defaults. It uses up one
// of what remains. Errors: [ErrNotFound], [ErrInvalid], [ErrConflict] if nothing remains,
// [ErrUnavailable], [ErrTimeout].
func (c *Client) TriggerSchedule(
	ctx context.Context, id string, o *SlotOptions,
) (*ops.ScheduleResponse, error) {
	if o == nil {
		o = &SlotOptions{}
	}
	return c.schedule(ctx, "scheduleTrigger", &ops.ScheduleTriggerRequest{
		V: schemas.Version, ID: id, Overlap: o.Overlap, RequestID: cmp.Or(
			o.RequestID, ulid.Make().String(),
		),
		Reason: o.Reason, Identity: c.name,
	})
}

// BackfillSchedule does the slots that a schedule would have had from from on and before until,
// both in the past; nil options mean all defaults. The answer says how many slots there are.
// Errors: [ErrNotFound], [ErrInvalid], [ErrLimit] if there are too many, [ErrUnavailable],
// [ErrTimeout].
func (c *Client) BackfillSchedule(
	ctx context.Context, id string, from, until time.Time, o *SlotOptions,
) (*ops.ScheduleResponse, error) {
	if o == nil {
		o = &SlotOptions{}
	}
	return c.schedule(ctx, "scheduleBackfill", &ops.ScheduleBackfillRequest{
		V: schemas.Version, ID: id, From: schemas.At(from), Until: schemas.At(until),
		Overlap: o.Overlap, RequestID: cmp.Or(o.RequestID, ulid.Make().String()), Reason: o.Reason,
		Identity: c.name,
	})
}

// DeleteSchedule deletes a schedule, and returns what it was last. Its open runs go on. Errors:
// those of [Client.PauseSchedule].
func (c *Client) DeleteSchedule(
	ctx context.Context, id, reason string,
) (*ops.ScheduleResponse, error) {
	return c.schedule(ctx, "scheduleDelete", &ops.ScheduleRequest{
		V: schemas.Version, ID: id, Reason: reason, Identity: c.name,
	})
}

// schedule asks a verb about one schedule.
func (c *Client) schedule(
	ctx context.Context, verb string, req any,
) (*ops.ScheduleResponse, error) {
	refusal := func(a *ops.ScheduleResponse) *schemas.Error { return a.Error }
	return call(ctx, c, query{verb: verb}, req, refusal)
}

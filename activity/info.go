package activity

import (
	"context"
	"fmt"
	"time"

	"github.com/droverhq/drover/schemas"
)

// TaskInfo tells an activity who it is.
type TaskInfo struct {
	Namespace    string
	WorkflowID   string
	Run          string
	WorkflowType string
	ActivityID   string
	Type         string
	TypeVersion  string
	List         string
	// Attempt counts from 1.
	Attempt int
	// ScheduledAt is when the activity was scheduled, by the server's clock.
	ScheduledAt time.Time
	// StartedAt is when this attempt began, by the local clock.
	StartedAt time.Time
	// Deadline is when the context ends, by the local clock; zero when there is no limit.
	Deadline time.Time
	// Heartbeat is how often the service must hear of the activity; 0 when it need not.
	Heartbeat time.Duration
	// HeartbeatDetails are those of the last heartbeat of an earlier attempt, nil if there was
	// none. See [Resume].
	HeartbeatDetails schemas.Payload
	// IdempotencyKey is the same for every run of this activity. Hand it to services that recognise
	// repeats.
	IdempotencyKey string
	// Fence grows from one owner of the workflow to the next. A resource that remembers the highest
	// one it has seen can refuse an attempt that was long overtaken.
	Fence uint64
}

// Info returns what is known of the activity that ctx belongs to. For any other context it is the
// zero value.
func Info(ctx context.Context) TaskInfo {
	if a := activityOf(ctx); a != nil {
		return a.info
	}
	return TaskInfo{}
}

// Resume gives the details of the last heartbeat of an earlier attempt of the activity, so that
// this one can go on from there. They are decoded as an input is, see [Register]. ok is false if
// there are none, and in a context that is not an activity's. Details that are no T are an error,
// and so is a reference to details too large for a message.
func Resume[T any](ctx context.Context) (details T, ok bool, err error) {
	p := Info(ctx).HeartbeatDetails
	if len(p) == 0 {
		return details, false, nil
	}
	if details, err = decode[T](p); err != nil {
		return details, false, fmt.Errorf("activity: details of the last heartbeat: %w", err)
	}
	return details, true, nil
}

// contextKey is the key of the *attempt in an activity's context.
type contextKey struct{}

func activityOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(contextKey{}).(*attempt)
	return a
}

func infoOf(d *delivery) TaskInfo {
	t := d.task
	return TaskInfo{
		Namespace: t.Namespace, WorkflowID: t.WorkflowID, Run: t.Run, WorkflowType: t.WorkflowType,
		ActivityID: t.ActivityID, Type: t.Type, TypeVersion: t.TypeVersion, List: t.List,
		Attempt: d.number, HeartbeatDetails: d.resume,
		ScheduledAt: t.ScheduledAt.Time(), Heartbeat: max(t.Heartbeat, 0).Std(),
		IdempotencyKey: t.IdempotencyKey, Fence: t.Fence,
	}
}

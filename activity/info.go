package activity

import (
	"context"
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
	// IdempotencyKey is the same for every run of this activity. Hand it to services that recognise repeats.
	IdempotencyKey string
	// Fence grows from one owner of the workflow to the next. A resource that remembers the highest one it has seen can
	// refuse an attempt that was long overtaken.
	Fence uint64
}

// Info returns what is known of the activity that ctx belongs to. For any other context it is the zero value.
func Info(ctx context.Context) TaskInfo {
	if a := activityOf(ctx); a != nil {
		return a.info
	}
	return TaskInfo{}
}

// contextKey is the key of the *attempt in an activity's context.
type contextKey struct{}

func activityOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(contextKey{}).(*attempt)
	return a
}

func infoOf(t *schemas.ActivityTask, number int) TaskInfo {
	return TaskInfo{
		Namespace: t.Namespace, WorkflowID: t.WorkflowID, Run: t.Run, WorkflowType: t.WorkflowType,
		ActivityID: t.ActivityID, Type: t.Type, TypeVersion: t.TypeVersion, List: t.List, Attempt: number,
		ScheduledAt: t.ScheduledAt.Time(), Heartbeat: max(t.Heartbeat, 0).Std(), IdempotencyKey: t.IdempotencyKey, Fence: t.Fence,
	}
}

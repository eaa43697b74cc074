package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// Whoever describes a run twice sees its timers in the same order.
func TestDescribedTimersAreInOrder(t *testing.T) {
	s := &execution.State{Start: &schemas.WorkflowStarted{}, Timers: map[string]execution.Timer{}}
	for i := range 50 {
		s.Timers[fmt.Sprint("t", i)] = execution.Timer{}
	}
	got := Describe(s).Timers
	if len(got) != 50 ||
		!slices.IsSortedFunc(
			got,
			func(a, b schemas.OpenTimer) int { return strings.Compare(a.TimerID, b.TimerID) },
		) {
		t.Errorf("got %v, want 50 in the order of their ids", got)
	}
}

// What is due and does not come is told as that, as when no timer worker rings. A moment's delay is
// none.
func TestWhyNothingAlarms(t *testing.T) {
	const start = schemas.Timestamp(1_700_000_000_000_000_000)
	after := func(d time.Duration) schemas.Timestamp { return start.Add(schemas.Duration(d)) }
	s := &execution.State{Start: &schemas.WorkflowStarted{}, Timers: map[string]execution.Timer{
		"tea": {Base: start, After: schemas.Duration(time.Minute)},
		"egg": {Base: start, After: schemas.Duration(time.Hour)},
	}}
	s.Activities = map[int64]*execution.Activity{
		5: {
			ScheduledID:   5,
			ScheduledBase: start,
			Started:       6,
			StartedBase:   start,
			Attempt:       1,
			Scheduled: &schemas.ActivityScheduled{
				ActivityID: "a", ActivityType: "work",
				StartToCloseTimeout: schemas.Duration(time.Minute), HeartbeatTimeout: schemas.Unlimited,
			},
		},
	}
	const runs = `activity "a" of type "work" runs on a worker since 2023-11-14T22:13:20Z (1m%ss), attempt 1, times out at 2023-11-14T22:14:20Z%s; timer "tea" expires at 2023-11-14T22:14:20Z%s; 1 more timer is open`
	for _, late := range []time.Duration{time.Second, 8 * time.Second} {
		clause := ""
		if late > 5*time.Second {
			clause = fmt.Sprintf(", which is %v ago: no alarm has rung, see: drover audit", late)
		}
		want := fmt.Sprintf(runs, strconv.Itoa(int(late.Seconds())), clause, clause)
		if d := cmp.Diff(want, openBecause(s, after(time.Minute+late), nil)); d != "" {
			t.Error(d)
		}
	}
	s = &execution.State{
		Start: &schemas.WorkflowStarted{
			ExecutionStartToCloseTimeout: schemas.Duration(time.Minute),
		},
		StartBase: start,
	}
	if got := openBecause(s, after(time.Minute+8*time.Second), nil); !strings.HasSuffix(
		got,
		"or times out at 2023-11-14T22:14:20Z, which is 8s ago: no alarm has rung, see: drover audit",
	) {
		t.Error(got)
	}
}

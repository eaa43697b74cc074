package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// Whoever describes a run twice sees its timers in the same order.
func TestDescribedTimersAreInOrder(t *testing.T) {
	s := &execution.State{Start: &schemas.WorkflowStarted{}, Timers: map[string]execution.Timer{}}
	for i := range 50 {
		s.Timers[fmt.Sprint("t", i)] = execution.Timer{}
	}
	got := describeState(s).Timers
	if len(got) != 50 || !slices.IsSortedFunc(got, func(a, b schemas.OpenTimer) int { return strings.Compare(a.TimerID, b.TimerID) }) {
		t.Errorf("got %v, want 50 in the order of their ids", got)
	}
}

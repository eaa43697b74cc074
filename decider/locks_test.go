package decider_test

import (
	"testing"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
	"github.com/google/go-cmp/cmp"
)

func TestViewOfLocks(t *testing.T) {
	parent := &schemas.Execution{WorkflowID: "parent", Run: "1"}
	held := decider.Lock{Status: decider.LockHeld, Fence: 7}
	for _, c := range []struct {
		name    string
		history []schemas.Attributes
		want    decider.Lock
		refused int
	}{
		{name: "never asked for"},
		{"of another scope", []schemas.Attributes{&schemas.LockRequested{Lock: "l", Scope: "s"}, &schemas.LockAcquired{Lock: "l", Scope: "s", Fence: 7}}, decider.Lock{}, 0},
		{"asked for", []schemas.Attributes{&schemas.LockRequested{Lock: "l"}}, decider.Lock{Status: decider.LockWaiting}, 0},
		{"held", []schemas.Attributes{&schemas.LockRequested{Lock: "l"}, &schemas.LockAcquired{Lock: "l", Fence: 7}}, held, 0},
		{
			"an ancestor's",
			[]schemas.Attributes{&schemas.LockRequested{Lock: "l"}, &schemas.LockAcquired{Lock: "l", Fence: 7, Holder: parent, Expires: 9}},
			decider.Lock{Status: decider.LockHeld, Fence: 7, Holder: parent, Expires: 9},
			0,
		},
		{"asked for again", []schemas.Attributes{&schemas.LockAcquired{Lock: "l", Fence: 7}, &schemas.LockRequested{Lock: "l"}}, held, 0},
		{"had from the run before", []schemas.Attributes{&schemas.WorkflowStarted{Locks: []schemas.HeldLock{{Lock: "l", Fence: 7, Run: "0", EventID: 5}}}}, held, 0},
		{"released", []schemas.Attributes{&schemas.LockAcquired{Lock: "l", Fence: 7}, &schemas.LockReleased{Lock: "l", Fence: 7}}, decider.Lock{Status: decider.LockReleased, Fence: 7}, 0},
		{
			"broken",
			[]schemas.Attributes{&schemas.LockAcquired{Lock: "l", Fence: 7}, &schemas.LockBroken{Lock: "l", Fence: 7, Cause: schemas.CauseOperatorInitiated, Reason: "stuck"}},
			decider.Lock{Status: decider.LockBroken, Fence: 7, Cause: schemas.CauseOperatorInitiated, Reason: "stuck"},
			0,
		},
		{
			"refused",
			[]schemas.Attributes{&schemas.LockRequested{Lock: "l"}, &schemas.LockRefused{Lock: "l", Cause: schemas.CauseLockQueue, Details: "too many", ScheduledEventID: 1}},
			decider.Lock{Status: decider.LockRefused, Cause: schemas.CauseLockQueue, Reason: "too many"},
			1,
		},
		{"asked for twice, and refused at once", []schemas.Attributes{&schemas.LockRequested{Lock: "l"}, &schemas.LockRefused{Lock: "l", Cause: schemas.CauseLockRequested}}, decider.Lock{Status: decider.LockWaiting}, 1},
		{"released, and then not to be given back", []schemas.Attributes{&schemas.LockReleased{Lock: "l", Fence: 7}, &schemas.LockRefused{Lock: "l", Cause: schemas.CauseLockRequested, Decision: schemas.DecideReleaseLock}}, decider.Lock{Status: decider.LockReleased, Fence: 7}, 0},
		{"refused at once", []schemas.Attributes{&schemas.LockRefused{Lock: "l", Cause: schemas.CauseInvalidAttributes}}, decider.Lock{Status: decider.LockRefused, Cause: schemas.CauseInvalidAttributes}, 1},
	} {
		v := viewOf(numbered(c.history))
		if diff := cmp.Diff(c.want, v.Lock("l", "")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if got := v.Refused(schemas.DecideAcquireLock); len(got) != c.refused || c.refused > 0 && got[0].ID != "l" {
			t.Errorf("%s: got refusals %+v, want %d", c.name, got, c.refused)
		}
	}
}

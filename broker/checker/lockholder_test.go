package checker_test

import (
	"slices"
	"testing"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/schemas"
)

// What looks like two holders and is none. Records are stored a minute apart.
func TestLegalHolders(t *testing.T) {
	letGo := func(id string, fence string) string {
		return "@ " + id + " " + id + "-run\nLockReleased L fence=" + fence + " deciderCompletedEventId=0\n"
	}
	for name, text := range map[string]string{
		"one after another":            takes("a", 1, "") + letGo("a", "1") + takes("b", 2, ""),
		"two places":                   takes("a", 1, "limit=2") + takes("b", 2, "limit=2") + letGo("a", "1") + takes("c", 3, "limit=2"),
		"another scope":                takes("a", 1, "") + "@ b b-run\nDeciderStarted\nDeciderCompleted\nLockRequested L scope=s\nLockAcquired L scope=s fence=1\nDeciderScheduled\n",
		"a child enters by its parent": takes("a", 1, "") + "@ b b-run\nDeciderStarted\nDeciderCompleted\nLockRequested L\nLockAcquired L fence=1 holder={\"workflowId\":\"a\"}\nDeciderScheduled\n",
		"a lease ends before its holder knows": "@ a a-run\nDeciderStarted\nDeciderCompleted\nLockRequested L lease=30\n" +
			"LockAcquired L fence=1 expires=\"1970-01-01T16:40:30Z\"\nDeciderScheduled\n" + takes("b", 2, "") + "@ a a-run\nLockBroken L fence=1 cause=LEASE_EXPIRED\n",
		"the key was changed by hand": takes("a", 1, "") + takes("b", 2, "") + "@ a a-run\nLockBroken L fence=1 cause=LOCK_LOST\n",
	} {
		for _, backward := range []bool{false, true} {
			if found := checkNamespace(byID(chained(t, scenario(t, text)), backward), checker.EndOptions{}); len(found) > 0 {
				t.Errorf("%s: %v", name, found)
			}
		}
	}
}

// What was read after the seal is believed, and judges nobody.
func TestHoldersAfterTheSeal(t *testing.T) {
	stored := chained(t, scenario(t, takes("a", 1, "")+takes("b", 2, "")))
	n := checker.NewNamespace()
	n.Record(stored[0].Record, stored[0].Body, stored[0].At)
	n.Seal()
	n.Record(stored[1].Record, stored[1].Body, stored[1].At)
	if found := n.End(checker.EndOptions{}); len(found) > 0 {
		t.Fatalf("got %v, want nothing: the end of the first may not have been read", found)
	}
}

// A lock may be let go and taken at one instant of the server's clock: its holders do not meet.
func TestHoldersOfOneInstant(t *testing.T) {
	stored := chained(t, scenario(t, takes("a", 1, "")+"@ a a-run\nLockReleased L fence=1 deciderCompletedEventId=0\n"+takes("b", 2, "")))
	for i := range stored {
		stored[i].At = stored[len(stored)-1].At
	}
	if found := checkNamespace(stored, checker.EndOptions{}); len(found) > 0 {
		t.Fatalf("got %v, want nothing", found)
	}
}

// After a clock that was set back nobody can tell by its times who held a lock when.
func TestHoldersWhenTheClockIsSetBack(t *testing.T) {
	const (
		minute = 60 * second
		letGo  = "@ a a-run\nLockReleased L fence=1 deciderCompletedEventId=0\n"
		other  = "@ c c-run\n@ c c-run\nDeciderStarted\n" // two records of a run that shows the step
	)
	one, two := takes("a", 1, ""), takes("b", 2, "")
	for name, tc := range map[string]struct {
		text string
		at   []schemas.Timestamp // of the records
		lock int                 // findings
	}{
		"a tenure ends before it began":        {one + letGo + two, []schemas.Timestamp{30, 20, 25}, 0},
		"a tenure is over before the step":     {one + letGo + other + two, []schemas.Timestamp{20, 30, 31, 19, 25}, 0},
		"two holders, a step before them":      {one + other + two, []schemas.Timestamp{20, 15, 10, 25}, 1},
		"two holders, one of which never goes": {one + other + two, []schemas.Timestamp{20, 30, 19, 25}, 1},
	} {
		stored := chained(t, scenario(t, tc.text))
		for i := range stored {
			stored[i].At = tc.at[i] * minute
		}
		found := slices.DeleteFunc(checkNamespace(stored, checker.EndOptions{}), func(v checker.Violation) bool { return v.Rule == checker.RuleServerTime })
		if len(found) != tc.lock || tc.lock > 0 && found[0].Rule != checker.RuleLock {
			t.Errorf("%s: got %v, want %d of %s", name, found, tc.lock, checker.RuleLock)
		}
	}
}

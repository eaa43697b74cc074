package broker

import (
	"testing"

	"github.com/droverhq/drover/broker/locks"
)

// What this broker wrote may be told after the watch has brought what others made of it: a lock that is gone stays gone.
func TestLockThatIsGoneStaysGone(t *testing.T) {
	deferredRun := locks.Fresh("l", "", 1)
	for name, late := range map[string]lockEntry{"written": {lock: deferredRun, rev: 5}, "read as absent": {rev: 6}} {
		table := &lockTable{entries: map[string]lockEntry{}}
		table.begin()
		table.put("=.l", lockEntry{lock: deferredRun, rev: 5}, true)
		table.put("=.l", lockEntry{rev: 6}, true)
		table.put("=.l", late, false)
		if len(table.entries) != 0 {
			t.Errorf("%s: the table has %+v of a lock that is gone", name, table.entries)
		}
		table.put("=.l", lockEntry{lock: deferredRun, rev: 7}, false)
		if table.get("=.l") == nil {
			t.Errorf("%s: a lock that is taken anew is not there before the watch has brought it", name)
		}
		table.begin() // the bucket was made anew, and its revisions begin anew
		table.put("=.l", lockEntry{lock: deferredRun, rev: 1}, false)
		if got := table.entries["=.l"]; got.rev != 1 {
			t.Errorf("%s: got %+v of a new bucket", name, got)
		}
	}
}

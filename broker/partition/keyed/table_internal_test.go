package keyed

import (
	"testing"

	"github.com/droverhq/drover/broker/locks"
	"github.com/droverhq/drover/schemas"
)

// What this broker wrote may be told after the watch has brought what others made of it. A lock
// that is gone stays gone.
func TestLockThatIsGoneStaysGone(t *testing.T) {
	held := locks.Fresh("l", "", 1)
	locks.Enter(held, locks.Entry{Place: schemas.LockPlace{WorkflowID: "w", Run: "r", EventID: 1}}, 1)
	value, err := schemas.MarshalJSON(held)
	if err != nil {
		t.Fatal(err)
	}
	key := schemas.LockKey("", "l")
	for name, late := range map[string]Lock{
		"written": {Record: held, Revision: 5}, "read as absent": {Revision: 6},
	} {
		table := NewTable(func(string) int { return 0 }, func(_ string, err error) { t.Error(err) })
		table.Begin()
		table.Take(key, value, 5, false)
		table.Take(key, nil, 6, true)
		table.Put(key, late)
		if len(table.entries) != 0 {
			t.Errorf("%s: the table has %+v of a lock that is gone", name, table.entries)
		}
		table.Put(key, Lock{Record: held, Revision: 7})
		if table.Get(key) == nil {
			t.Errorf("%s: a lock that is taken anew is not there before the watch has brought it", name)
		}
		table.Begin() // the bucket was made anew, and its revisions begin anew
		table.Put(key, Lock{Record: held, Revision: 1})
		if got := table.entries[key]; got.Revision != 1 {
			t.Errorf("%s: got %+v of a new bucket", name, got)
		}
	}
}

package keyed_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/locks"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/schemas"
)

// viewer is an owner whose workflows begin with "o".
type viewer struct {
	now      schemas.Timestamp
	compared []string
	timers   map[int]func()
	pauses   []time.Duration
	n        int
	views    *keyed.Views
}

func newViewer() *viewer {
	v := &viewer{timers: map[int]func(){}}
	v.views = keyed.NewViews(v)
	return v
}

func (v *viewer) Ours(wid string) bool   { return strings.HasPrefix(wid, "o") }
func (v *viewer) Now() schemas.Timestamp { return v.now }

func (v *viewer) After(d time.Duration, f func()) func() {
	v.n++
	n := v.n
	v.timers[n], v.pauses = f, append(v.pauses, d)
	return func() { delete(v.timers, n) }
}

func (v *viewer) Compare(_ string, at keyed.Place) {
	v.compared = append(v.compared, at.WorkflowID)
}

// fire lets all timers that are set run.
func (v *viewer) fire() {
	timers := v.timers
	v.timers = map[int]func(){}
	for _, f := range timers {
		f()
	}
}

// took returns what was compared since, in alphabetical order.
func (v *viewer) took() string {
	all := slices.Sorted(slices.Values(v.compared))
	v.compared = nil
	return strings.Join(all, " ")
}

func placed(wid string) schemas.LockPlace {
	return schemas.LockPlace{WorkflowID: wid, Run: wid + "-run", EventID: 1}
}

func at(wid string) keyed.Place {
	p := placed(wid)
	return keyed.PlaceOf(&p)
}

// lock is held by the first and waited for by the others.
func lock(lease schemas.Duration, wids ...string) *schemas.LockRecord {
	r := locks.Fresh("l", "", 0)
	for _, wid := range wids {
		p := placed(wid)
		p.Lease = lease
		locks.Enter(r, locks.Entry{Place: p, Limit: 1, MaxWaiters: 9}, 0)
	}
	return r
}

func TestOnlyPlacesThatChangeAreCompared(t *testing.T) {
	v := newViewer()
	r := lock(0, "x", "o1", "o2")
	for _, step := range []struct {
		name string
		lock *schemas.LockRecord
		want string
	}{
		{"two of ours have come", r, "o1 o2"},
		{"nothing has changed", r, ""},
		{"another's has come", lock(0, "x", "o1", "o2", "y"), ""},
		{"one of ours has gone", lock(0, "x", "o2"), "o1"},
		{"one of ours is let in", lock(0, "o2"), "o2"},
		{"the key is gone", nil, "o2"},
		{"and still is", nil, ""},
	} {
		v.views.See("k", keyed.Lock{Record: step.lock})
		if got := v.took(); got != step.want {
			t.Errorf("%s: compared %q, want %q", step.name, got, step.want)
		}
	}
}

func TestPlaceThatWasGivenBackIsNoNews(t *testing.T) {
	v := newViewer()
	v.views.See("k", keyed.Lock{Record: lock(0, "o1")})
	for key, place := range v.views.Of("o1") {
		v.views.Left(key, place)
	}
	v.took()
	v.views.See("k", keyed.Lock{})
	if got := v.took(); got != "" {
		t.Errorf("compared %q", got)
	}
}

// A run whose parent may come to hold the lock looks again whenever somebody enters.
func TestChildThatWaitsIsComparedWhenTheHolderChanges(t *testing.T) {
	v := newViewer()
	v.views.See("k", keyed.Lock{Record: lock(0, "a", "o1", "b")})
	v.views.WaitsForKin("k", at("o1"))
	v.took()
	v.views.See("k", keyed.Lock{Record: lock(0, "a", "o1", "b", "c")})
	if got := v.took(); got != "" {
		t.Errorf("compared %q, and the holder is the same", got)
	}
	r := lock(0, "a", "o1")
	r.Holders[0].Fence += 5
	v.views.See("k", keyed.Lock{Record: r})
	if got := v.took(); got != "o1" {
		t.Errorf("compared %q, want the child", got)
	}
}

func TestLeaseThatEndsIsLookedAt(t *testing.T) {
	v := newViewer()
	v.views.See("k", keyed.Lock{Record: lock(schemas.Seconds(3), "x", "o1", "o2")})
	v.took()
	if len(v.timers) != 1 || v.pauses[0] < 3*time.Second {
		t.Fatalf("%d timers after %v, want one after the end of the lease", len(v.timers), v.pauses)
	}
	v.fire()
	if got := v.took(); got != "o1" || len(v.timers) != 1 {
		t.Errorf("compared %q, set %d timers; want the first that waits, and one", got, len(v.timers))
	}
	v.views.See("k", keyed.Lock{})
	if len(v.timers) != 0 {
		t.Error("a lock that is gone is still looked at")
	}
}

func TestJudge(t *testing.T) {
	const second = schemas.Timestamp(time.Second)
	waits := &execution.Lock{Lock: "l", Run: "o1-run", EventID: 1}
	holds := &execution.Lock{Lock: "l", Run: "o1-run", EventID: 1, Fence: 1}
	until := func(end schemas.Timestamp) *execution.Lock {
		l := *holds
		l.Expires = end
		return &l
	}
	shares := &execution.Lock{Lock: "l", Fence: 1, Holder: &schemas.Execution{WorkflowID: "p"}}
	for _, tt := range []struct {
		name  string
		lock  *schemas.LockRecord
		run   *execution.Lock
		child bool
		want  keyed.Verdict
	}{
		{"neither", nil, nil, false, keyed.Agree},
		{"another's, and the run wants none", lock(0, "a"), nil, false, keyed.Agree},
		{"shared", lock(0, "a"), shares, false, keyed.Agree},
		{"shared, and it stands in line too", lock(0, "a", "o1"), shares, false, keyed.TakeOut},
		{"holds and is closed", lock(0, "o1"), nil, false, keyed.TakeOut},
		{"waits and is closed", lock(0, "a", "o1"), nil, false, keyed.TakeOut},
		{"holds and was not told", lock(0, "o1"), waits, false, keyed.Tell},
		{"holds", lock(0, "o1"), holds, false, keyed.Agree},
		{"waits", lock(0, "a", "o1"), waits, false, keyed.Agree},
		{"waits, and a parent may hold it", lock(0, "a", "o1"), waits, true, keyed.Enter},
		{"waits, and a lease is over", lock(schemas.Seconds(9), "a", "o1"), waits, false, keyed.Enter},
		{"waits for a lease", lock(schemas.Seconds(11), "a", "o1"), waits, false, keyed.Agree},
		{"has lost its place in line", lock(0, "a"), waits, false, keyed.Enter},
		{"has lost its lock", nil, holds, false, keyed.Enter},
		{"its lease is over", nil, until(10 * second), false, keyed.Expire},
		{"its lease is nearly over", nil, until(11 * second), false, keyed.Later},
		{"its lease is not over", nil, until(20 * second), false, keyed.Enter},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := newViewer()
			v.now = 10 * second
			v.views.See("k", keyed.Lock{Record: tt.lock})
			j := v.views.Judge("k", at("o1"), tt.run, tt.child)
			if j.Verdict != tt.want {
				t.Errorf("verdict %d, want %d", j.Verdict, tt.want)
			}
			if later := j.Verdict == keyed.Later; later != (j.After > 0) {
				t.Errorf("look again after %v", j.After)
			}
		})
	}
}

// heard is an owner that notes what it is told.
type heard struct{ of []uint64 }

func (h *heard) Seen(_ string, l keyed.Lock) { h.of = append(h.of, l.Revision) }

func TestTableTellsTheOwnersOfThePlaces(t *testing.T) {
	table := keyed.NewTable(func(wid string) int {
		if strings.HasPrefix(wid, "o") {
			return 1
		}
		return 2
	}, func(string, error) {})
	ours, others, later := &heard{}, &heard{}, &heard{}
	table.Own(1, ours)
	table.Own(2, others)
	table.Put("k", keyed.Lock{Record: lock(0, "o1"), Revision: 3})
	table.Put("k", keyed.Lock{Record: lock(0, "o2"), Revision: 2}) // late
	table.Put("k", keyed.Lock{Record: lock(0, "o1", "a"), Revision: 4})
	table.Own(1, later) // the next owner of the partition
	table.Disown(1, ours)
	table.Put("k", keyed.Lock{Record: lock(0, "a"), Revision: 5})
	table.Put("k", keyed.Lock{Record: lock(0, "a", "b"), Revision: 6})
	for name, got := range map[string]struct{ got, want []uint64 }{
		"the first owner": {ours.of, []uint64{3, 4}},
		"the next owner":  {later.of, []uint64{4, 5}},
		"the other's":     {others.of, []uint64{4, 5, 6}},
	} {
		if !slices.Equal(got.got, got.want) {
			t.Errorf("%s was told %v, want %v", name, got.got, got.want)
		}
	}
	for key, l := range table.All("") {
		if key != "k" || l.Revision != 6 {
			t.Errorf("the table lists %s of revision %d", key, l.Revision)
		}
	}
	for key := range table.All("k") {
		t.Errorf("%s stands after itself", key)
	}
}

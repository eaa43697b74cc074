package locks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/droverhq/drover/broker/locks"
	"github.com/droverhq/drover/schemas"
)

func place(wid string, event int64) schemas.LockPlace {
	return schemas.LockPlace{WorkflowID: wid, Run: wid + "-run", EventID: event}
}

func enter(r *schemas.LockRecord, p schemas.LockPlace, now schemas.Timestamp) locks.Result {
	return locks.Enter(r, locks.Entry{Place: p, MaxWaiters: 3}, now)
}

func wids(places []schemas.LockPlace) (all []string) {
	for _, p := range places {
		all = append(all, p.WorkflowID)
	}
	return all
}

func TestEnterAndLeave(t *testing.T) {
	r := locks.Fresh("L", "s", 41)
	r.Next = 42
	a, b, c := place("a", 5), place("b", 5), place("c", 5)
	if got := enter(r, a, 100); got.Outcome != locks.Holds || got.Place.Fence != 42 || got.Place.Since != 100 || !got.Changed {
		t.Fatalf("the first: %+v", got)
	}
	for i, p := range []schemas.LockPlace{b, c} {
		if got := enter(r, p, 110); got.Outcome != locks.Waits || !got.Changed || locks.Line(r, &p) != i+1 || r.Waiters[i].Since != 110 {
			t.Fatalf("%s: %+v, number %d in line: %+v", p.WorkflowID, got, locks.Line(r, &p), r.Waiters)
		}
	}
	for _, p := range []schemas.LockPlace{a, b} { // repeats
		if got := enter(r, p, 120); got.Changed {
			t.Fatalf("a repeat of %s changed something: %+v", p.WorkflowID, got)
		}
	}
	if !locks.Leave(r, &a, 200) || locks.Leave(r, &a, 210) {
		t.Fatal("leaving twice")
	}
	if h := r.Holders[0]; h.WorkflowID != "b" || h.Fence != 43 || h.Since != 200 || r.Next != 44 {
		t.Fatalf("the next holder is %+v", h)
	}
	if !locks.Leave(r, &c, 220) || len(r.Waiters) != 0 || !locks.Leave(r, &b, 230) || !locks.Empty(r) {
		t.Fatalf("left: %+v", r)
	}
}

func TestAnotherLimitIsRefusedWhileTheLockIsInUse(t *testing.T) {
	r := locks.Fresh("L", "", 0)
	two := func(wid string) locks.Entry { return locks.Entry{Place: place(wid, 1), Limit: 2, MaxWaiters: 9} }
	for _, wid := range []string{"a", "b"} {
		if got := locks.Enter(r, two(wid), 1); got.Outcome != locks.Holds {
			t.Fatalf("%s: %+v", wid, got)
		}
	}
	if got := enter(r, place("c", 1), 1); got.Outcome != locks.Differs || got.Changed {
		t.Fatalf("limit 1 in a lock of 2: %+v", got)
	}
	for _, wid := range []string{"a", "b"} {
		p := place(wid, 1)
		locks.Leave(r, &p, 2)
	}
	if got := enter(r, place("c", 1), 3); got.Outcome != locks.Holds || r.Limit != 1 {
		t.Fatalf("limit 1 in an empty lock: %+v, %+v", got, r)
	}
}

func TestTheLineIsBounded(t *testing.T) {
	r := locks.Fresh("L", "", 0)
	for _, wid := range []string{"a", "b", "c", "d"} {
		enter(r, place(wid, 1), 1)
	}
	if got := enter(r, place("e", 1), 1); got.Outcome != locks.Full || got.Changed {
		t.Fatalf("the fourth in line: %+v", got)
	}
	if got := enter(r, place("d", 1), 1); got.Outcome != locks.Waits {
		t.Fatalf("the third, again: %+v", got)
	}
	if got := locks.Enter(r, locks.Entry{Place: place("b", 1), MaxWaiters: -1}, 1); got.Outcome != locks.Waits || got.Changed {
		t.Fatalf("the first, again, without room in the record: %+v", got)
	}
	if got := locks.Enter(locks.Fresh("L", "", 0), locks.Entry{Place: place("a", 1), MaxWaiters: -1}, 1); got.Outcome != locks.Full {
		t.Fatalf("without room in the record: %+v", got)
	}
	two := locks.Fresh("L", "", 0)
	for _, wid := range []string{"a", "b"} {
		if got := locks.Enter(two, locks.Entry{Place: place(wid, 1), Limit: 2}, 1); got.Outcome != locks.Holds {
			t.Fatalf("%s, which need not wait, where nobody may: %+v", wid, got)
		}
	}
}

// A key that is deleted begins again beyond every fence of the record before, however many entered by its last message.
func TestNoFenceComesTwice(t *testing.T) {
	const last = 41
	r := locks.Fresh("L", "", last)
	for i := range schemas.MaxLockLimit {
		locks.Enter(r, locks.Entry{Place: place(fmt.Sprint(i), 1), Limit: schemas.MaxLockLimit}, 1)
	}
	highest := r.Holders[len(r.Holders)-1].Fence
	r = locks.Fresh("L", "", last+1)
	if got := enter(r, place("a", 1), 2); len(r.Holders) != 1 || got.Place.Fence <= highest {
		t.Fatalf("fence %d after %d", got.Place.Fence, highest)
	}
}

func TestALeaseEndsForWhoWantsTheLock(t *testing.T) {
	r := locks.Fresh("L", "", 0)
	a := place("a", 1)
	a.Lease = 50
	enter(r, a, 100)
	if got := enter(r, place("b", 1), 149); got.Outcome != locks.Waits {
		t.Fatalf("before the end: %+v", got)
	}
	if got := enter(r, place("b", 1), 150); got.Outcome != locks.Holds || got.Place.Fence != 2 || len(r.Holders) != 1 {
		t.Fatalf("at the end: %+v, %+v", got, r)
	}
	r = locks.Fresh("L", "", 0)
	for i, wid := range []string{"a", "b"} {
		e := locks.Entry{Place: place(wid, 1), Limit: 2, MaxWaiters: 3}
		e.Place.Lease = a.Lease
		if got := locks.Enter(r, e, schemas.Timestamp(100+100*i)); got.Outcome != locks.Holds || len(r.Holders) != i+1 {
			t.Fatalf("beside a lease that is over, where there is room: %+v, %+v", got, r)
		}
	}
	r = locks.Fresh("L", "", 0)
	for i, wid := range []string{"a", "b", "c", "d", "e"} {
		e := locks.Entry{Place: place(wid, 1), Limit: 2, MaxWaiters: 3}
		e.Place.Lease = a.Lease
		locks.Enter(r, e, []schemas.Timestamp{100, 100, 120, 120, 150}[i])
	}
	if got := wids(r.Holders); !cmp.Equal(got, []string{"c", "d"}) {
		t.Fatalf("held by %v when two leases end at once, want those who waited", got)
	}
	r = locks.Fresh("L", "", 0)
	a.Lease = schemas.Duration(1<<63 - 1)
	enter(r, a, 100)
	if got := enter(r, place("b", 1), 1<<62); got.Outcome != locks.Waits {
		t.Fatalf("a lease beyond all time: %+v", got)
	}
}

func TestAnAncestorLetsIn(t *testing.T) {
	r := locks.Fresh("L", "", 0)
	top := place("top", 3)
	top.FirstRun = "first"
	enter(r, top, 1)
	child := locks.Entry{Place: place("child", 4), MaxWaiters: 3}
	if got := locks.Enter(r, child, 2); got.Outcome != locks.Waits {
		t.Fatalf("a stranger: %+v", got)
	}
	child.Ancestors = []schemas.Execution{{WorkflowID: "middle", Run: "m"}, {WorkflowID: "top", Run: "first"}}
	if got := locks.Enter(r, child, 3); got.Outcome != locks.Shares || got.Place.Fence != 1 || !got.Changed || len(r.Waiters) != 0 {
		t.Fatalf("a grandchild that stood in line: %+v, %+v", got, r)
	}
	child.Ancestors[1].Run = "another"
	if got := locks.Enter(r, child, 4); got.Outcome != locks.Waits {
		t.Fatalf("the child of another chain: %+v", got)
	}
	other := locks.Entry{Place: place("other", 4), MaxWaiters: 3, Ancestors: []schemas.Execution{{WorkflowID: "top", Run: "first"}}}
	if got := locks.Enter(r, other, 5); got.Outcome != locks.Shares || got.Changed || !cmp.Equal(wids(r.Waiters), []string{"child"}) {
		t.Fatalf("a child that did not stand in line: %+v, %+v", got, r)
	}
}

// Whoever is refused finds a lease that is over, and lets in who comes next.
func TestARefusedEntryEndsALease(t *testing.T) {
	lease := place("a", 1)
	lease.Lease = 50
	d := place("d", 1)
	for name, tt := range map[string]struct {
		before  []schemas.LockPlace
		limit   int
		entry   locks.Entry
		outcome locks.Outcome
		holds   []string
	}{
		"another limit":                  {[]schemas.LockPlace{lease, place("b", 1)}, 1, locks.Entry{Place: d, Limit: 2, MaxWaiters: 3}, locks.Differs, []string{"b"}},
		"another limit, nobody waits":    {[]schemas.LockPlace{lease, place("b", 1)}, 2, locks.Entry{Place: d, MaxWaiters: 3}, locks.Differs, []string{"b"}},
		"no room in the record":          {[]schemas.LockPlace{lease, place("b", 1)}, 1, locks.Entry{Place: d, MaxWaiters: -1}, locks.Full, []string{"b"}},
		"no room there, and nobody left": {[]schemas.LockPlace{lease}, 1, locks.Entry{Place: d, MaxWaiters: -1}, locks.Full, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := locks.Fresh("L", "", 0)
			for _, p := range tt.before {
				locks.Enter(r, locks.Entry{Place: p, Limit: tt.limit, MaxWaiters: 3}, 100)
			}
			if got := locks.Enter(r, tt.entry, 150); got.Outcome != tt.outcome || !got.Changed {
				t.Fatalf("got %+v, want outcome %d and a change", got, tt.outcome)
			}
			if got := wids(r.Holders); !cmp.Equal(got, tt.holds) || len(r.Waiters) > 0 {
				t.Fatalf("held by %v, waited for by %v; want %v and nobody", got, wids(r.Waiters), tt.holds)
			}
		})
	}
}

func TestRegain(t *testing.T) {
	held := place("a", 1)
	held.Fence, held.Since = 7, 90
	r := locks.Fresh("L", "", 0)
	r.Next = 4
	if got := enter(r, held, 100); got.Outcome != locks.Holds || r.Holders[0].Fence != 7 || r.Next != 8 || r.Holders[0].Since != 90 || r.Limit != 1 {
		t.Fatalf("into an empty lock: %+v, %+v", got, r)
	}
	r = locks.Fresh("L", "", 8)
	enter(r, place("b", 1), 100)
	before := *r
	if got := enter(r, held, 101); got.Outcome != locks.Lost || got.Changed {
		t.Fatalf("into a lock that another holds: %+v", got)
	}
	if d := cmp.Diff(&before, r); d != "" {
		t.Fatal(d)
	}
	r = locks.Fresh("L", "", 8)
	locks.Enter(r, locks.Entry{Place: place("b", 1), Limit: 2, MaxWaiters: 3}, 100)
	locks.Enter(r, locks.Entry{Place: held, Limit: 2, MaxWaiters: 3}, 101)
	if got := wids(r.Holders); !cmp.Equal(got, []string{"a", "b"}) {
		t.Fatalf("holders %v, want them in the order of their fences", got)
	}
	r = locks.Fresh("L", "", 0)
	locks.Enter(r, locks.Entry{Place: held, Limit: 2, MaxWaiters: 3}, 101)
	other := place("b", 1)
	other.Fence = held.Fence
	if got := locks.Enter(r, locks.Entry{Place: other, Limit: 2, MaxWaiters: 3}, 102); got.Outcome != locks.Lost || len(r.Holders) != 1 {
		t.Fatalf("with the fence of another holder: %+v, %+v", got, r)
	}
	if got := locks.Enter(r, locks.Entry{Place: place("b", 1), Limit: 2, MaxWaiters: 3}, 103); got.Outcome != locks.Holds {
		t.Fatalf("beside one that has regained its place among two: %+v, %+v", got, r)
	}
}

// The places of three that have them by their histories come back in the order of their fences, whoever asks first, with a limit that
// the lock has already, and none of them stands in line any more.
func TestRegainInAnyOrder(t *testing.T) {
	for _, order := range []string{"abc", "acb", "bac", "bca", "cab", "cba"} {
		r := locks.Fresh("L", "", 0)
		locks.Enter(r, locks.Entry{Place: place("first", 1), Limit: 4, MaxWaiters: 3}, 100)
		first := r.Holders[0].Fence
		r.Waiters = []schemas.LockPlace{place("b", 1), place("waits", 1)} // as a server that lost what came later has it
		for wid := range strings.SplitSeq(order, "") {
			p := place(wid, 1)
			p.Fence = first + 10*uint64(wid[0]-'a'+1)
			if got := locks.Enter(r, locks.Entry{Place: p, Limit: 1, MaxWaiters: 3}, 101); got.Outcome != locks.Holds || !got.Changed {
				t.Fatalf("%s: %s: %+v", order, wid, got)
			}
		}
		if got := wids(r.Holders); !cmp.Equal(got, []string{"first", "a", "b", "c"}) || r.Limit != 4 || r.Next != first+31 {
			t.Errorf("%s: holders %v of %d, next fence %d", order, got, r.Limit, r.Next)
		}
		if got := wids(r.Waiters); !cmp.Equal(got, []string{"waits"}) {
			t.Errorf("%s: %v in line", order, got)
		}
	}
}

// A dumb lock: a list of who came, from which the first Limit hold.
func TestAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 3).Draw(t, "limit")
		r := locks.Fresh("L", "", 0)
		var came []string
		fences := map[string]uint64{}
		now, highest := schemas.Timestamp(1000), uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += schemas.Timestamp(rapid.IntRange(0, 5).Draw(t, "wait"))
			wid := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "who")
			p := place(wid, 1)
			i := len(came)
			for j, c := range came {
				if c == wid {
					i = j
				}
			}
			if rapid.Bool().Draw(t, "enter") {
				got := locks.Enter(r, locks.Entry{Place: p, Limit: limit, MaxWaiters: 100}, now)
				if i == len(came) {
					came = append(came, wid)
				}
				if want := i < limit; (got.Outcome == locks.Holds) != want {
					t.Fatalf("%s came as number %d: %+v", wid, i, got)
				}
			} else {
				changed := locks.Leave(r, &p, now)
				if changed != (i < len(came)) {
					t.Fatalf("%s leaves: changed is %v", wid, changed)
				}
				if i < len(came) {
					came = append(came[:i:i], came[i+1:]...)
					delete(fences, wid)
				}
			}
			n := min(limit, len(came))
			if d := cmp.Diff(append([]string(nil), came[:n]...), wids(r.Holders)) + cmp.Diff(append([]string(nil), came[n:]...), wids(r.Waiters)); d != "" {
				t.Fatalf("(-model +lock):\n%s", d)
			}
			for _, h := range r.Holders {
				if f, known := fences[h.WorkflowID]; known && f != h.Fence || !known && h.Fence <= highest {
					t.Fatalf("%s holds with fence %d; it had %d, the highest was %d", h.WorkflowID, h.Fence, f, highest)
				}
				fences[h.WorkflowID], highest = h.Fence, max(highest, h.Fence)
			}
			checkParses(t, r)
		}
	})
}

// checkParses: what these functions make is what the owners of other partitions accept.
func checkParses(t *rapid.T, r *schemas.LockRecord) {
	b, err := schemas.MarshalJSON(r)
	if err != nil {
		t.Fatal(err)
	}
	if !locks.Empty(r) {
		if _, err := schemas.ParseLock(schemas.LockKey(r.Scope, r.Lock), b); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
	}
}

// Who tries enters if there is room after those who wait, and leaves no place after if there is none.
func TestTry(t *testing.T) {
	lease := place("b", 5)
	lease.Lease = schemas.Seconds(1)
	for _, tt := range []struct {
		name      string
		before    []locks.Entry
		limit     int
		at        schemas.Timestamp
		want      locks.Outcome
		of        string // the workflow of the result's place
		holds, in string
	}{
		{"free", nil, 1, 0, locks.Holds, "a", "a", ""},
		{"again", []locks.Entry{{Place: place("a", 5)}}, 1, 0, locks.Holds, "a", "a", ""},
		{"held", []locks.Entry{{Place: place("b", 5)}}, 1, 0, locks.Busy, "b", "b", ""},
		{"held and waited for", []locks.Entry{{Place: place("b", 5)}, {Place: place("c", 5)}}, 1, 0, locks.Busy, "b", "b", "c"},
		{"another limit", []locks.Entry{{Place: place("b", 5), Limit: 2}}, 1, 0, locks.Differs, "", "b", ""},
		{"room", []locks.Entry{{Place: place("b", 5), Limit: 2}}, 2, 0, locks.Holds, "a", "b a", ""},
		{"a lease that is over", []locks.Entry{{Place: lease}}, 1, schemas.Timestamp(schemas.Seconds(2)), locks.Holds, "a", "a", ""},
		{"a lease that is over, for who waits", []locks.Entry{{Place: lease}, {Place: place("c", 5)}}, 1, schemas.Timestamp(schemas.Seconds(2)), locks.Busy, "c", "c", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := locks.Fresh("L", "", 6)
			for _, e := range tt.before {
				e.MaxWaiters = 9
				locks.Enter(r, e, 0)
			}
			got := locks.Enter(r, locks.Entry{Place: place("a", 5), Limit: tt.limit, MaxWaiters: 9, Try: true}, tt.at)
			if got.Outcome != tt.want || got.Place.WorkflowID != tt.of {
				t.Fatalf("got %+v, want outcome %d of %q", got, tt.want, tt.of)
			}
			if h, w := strings.Join(wids(r.Holders), " "), strings.Join(wids(r.Waiters), " "); h != tt.holds || w != tt.in {
				t.Fatalf("held by %q, waited for by %q; want %q and %q", h, w, tt.holds, tt.in)
			}
		})
	}
}

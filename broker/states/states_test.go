package states_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/droverhq/drover/broker/states"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/requirement"
)

func write(wid string, event int64) schemas.StateWrite {
	return schemas.StateWrite{WorkflowID: wid, Run: wid + "-run", EventID: event}
}

func set(wid string, event int64, value, require string) *states.Op {
	q, err := requirement.Parse(schemas.Payload(require))
	if err != nil {
		panic(err)
	}
	return &states.Op{Decision: schemas.DecideSetState, Write: write(wid, event), Value: schemas.Payload(value), Require: q}
}

func get() *states.Op { return &states.Op{Decision: schemas.DecideGetState} }

func wipe(wid string, event int64) *states.Op {
	return &states.Op{Decision: schemas.DecideClearState, Write: write(wid, event)}
}

func TestDo(t *testing.T) {
	absent := `{"when":"absent"}`
	type step struct {
		op    *states.Op
		store uint64 // before the operation what there is is stored with this revision
		want  states.Result
	}
	done := states.Result{Outcome: states.Done}
	written := states.Result{Outcome: states.Done, Unstored: true, Changed: true}
	at := func(rev uint64, value string) states.Result {
		return states.Result{Outcome: states.Done, Revision: rev, Value: schemas.Payload(value)}
	}
	for name, steps := range map[string][]step{
		"absent":                       {{get(), 0, done}, {wipe("a", 5), 0, done}},
		"set and read":                 {{set("a", 5, "1", ""), 0, written}, {get(), 7, at(7, "1")}},
		"read what is not stored":      {{set("a", 5, "1", ""), 0, written}, {get(), 0, states.Result{Outcome: states.Done, Unstored: true, Value: schemas.Payload("1")}}},
		"only if absent":               {{set("a", 5, "1", absent), 0, written}, {set("b", 5, "2", absent), 7, states.Result{Outcome: states.Refused, Value: schemas.Payload("1")}}},
		"a repeat":                     {{set("a", 5, "1", absent), 0, written}, {set("a", 5, "1", absent), 7, at(7, "")}},
		"a repeat of one overwritten":  {{set("a", 5, "1", ""), 0, written}, {set("b", 5, "2", ""), 7, written}, {set("a", 5, "1", ""), 9, at(7, "")}, {get(), 0, at(9, "2")}},
		"two of a run":                 {{set("a", 5, "1", ""), 0, written}, {set("a", 6, "2", "1"), 0, written}, {get(), 7, at(7, "2")}},
		"a repeat of a clear":          {{set("a", 5, "1", ""), 0, written}, {wipe("b", 5), 7, written}, {set("c", 5, "3", absent), 8, written}, {wipe("b", 5), 9, at(8, "")}, {get(), 0, at(9, "3")}},
		"null is there":                {{set("a", 5, "", ""), 0, written}, {set("b", 5, "1", absent), 7, states.Result{Outcome: states.Refused}}, {get(), 0, at(7, "")}},
		"cleared twice":                {{set("a", 5, "1", ""), 0, written}, {wipe("a", 6), 7, written}, {wipe("a", 7), 8, done}},
		"a repeat of what was cleared": {{set("a", 5, "1", ""), 0, written}, {wipe("b", 5), 7, written}, {set("a", 5, "1", ""), 8, at(7, "")}, {get(), 0, done}},
	} {
		t.Run(name, func(t *testing.T) {
			r := states.Fresh("k", "s")
			for i, s := range steps {
				if s.store != 0 {
					states.Read(r, s.store)
				}
				if d := cmp.Diff(s.want, states.Do(r, s.op, 1), cmpopts.EquateEmpty()); d != "" {
					t.Fatalf("step %d (-want +got):\n%s", i, d)
				}
			}
		})
	}
}

func TestSettle(t *testing.T) {
	r := states.Fresh("k", "")
	states.Do(r, set("a", 5, "1", ""), 1)
	states.Do(r, wipe("b", 5), 2)
	ofA := func(w *schemas.StateWrite) bool { return w.WorkflowID == "a" }
	if !states.Settle(r, ofA) || states.Settle(r, ofA) || states.Empty(r) || len(r.Unsettled) != 1 {
		t.Fatalf("got %+v", r)
	}
	if !states.Settle(r, func(*schemas.StateWrite) bool { return true }) || !states.Empty(r) {
		t.Fatalf("got %+v, want an empty record", r)
	}
	states.Do(r, set("a", 6, "2", ""), 3)
	if states.Settle(r, ofA); states.Empty(r) || len(r.Unsettled) > 0 {
		t.Fatalf("got %+v, want a value that nobody has to settle", r)
	}
	if got := states.Do(r, set("a", 6, "2", ""), 4); got.Changed || r.At != 3 {
		t.Fatalf("the last write again, after its settlement: %+v, %+v", got, r)
	}
}

// A key takes no write without an end: those that are not settled are bounded, and room comes as they are.
func TestFull(t *testing.T) {
	r := states.Fresh("k", "")
	for i := range schemas.MaxStateWrites {
		if got := states.Do(r, set("a", int64(i+1), "1", ""), 1); got.Outcome != states.Done {
			t.Fatalf("write %d: %+v", i, got)
		}
	}
	for _, op := range []*states.Op{set("b", 5, "2", ""), wipe("b", 5)} {
		if got := states.Do(r, op, 1); got.Outcome != states.Full || got.Changed {
			t.Fatalf("got %+v, want that the key is full", got)
		}
	}
	if got := states.Do(r, set("b", 5, "2", "7"), 1); got.Outcome != states.Refused {
		t.Fatalf("got %+v, want a refusal", got)
	}
	states.Settle(r, func(w *schemas.StateWrite) bool { return w.EventID == 1 })
	if got := states.Do(r, set("b", 5, "2", ""), 1); got.Outcome != states.Done {
		t.Fatalf("got %+v", got)
	}
}

// A dumb model: the list of all writes that were ever carried out. Writes are repeated at random until they are settled; the value
// is always that of the model, and each write happens once.
func TestOnceAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, rev := states.Fresh("k", ""), uint64(0)
		type known struct {
			op       *states.Op
			revision uint64
		}
		var open []known
		value, there, n := "", false, int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			var op *states.Op
			repeated := -1
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				n++
				require := rapid.SampledFrom([]string{"", `{"when":"absent"}`, `{"equals":"` + value + `"}`}).Draw(t, "require")
				op = set(strconv.Itoa(int(n)%3), n, `"`+fmt.Sprint(n)+`"`, require)
			case 2:
				n++
				op = wipe(strconv.Itoa(int(n)%3), n)
			case 3, 4:
				if len(open) == 0 {
					continue
				}
				repeated = rapid.IntRange(0, len(open)-1).Draw(t, "again")
				op = open[repeated].op
			default:
				if len(open) > 0 {
					w := open[0].op.Write
					open = open[1:]
					states.Settle(r, func(o *schemas.StateWrite) bool { return o.Is(&w) })
				}
				continue
			}
			wasThere, was := there, value
			got := states.Do(r, op, 1)
			switch {
			case repeated >= 0:
				if got.Changed || got.Outcome != states.Done || got.Revision != open[repeated].revision {
					t.Fatalf("a repeat of %+v: got %+v, want revision %d", op.Write, got, open[repeated].revision)
				}
			case got.Changed:
				rev++
				states.Read(r, rev)
				open = append(open, known{op, rev})
				if there = op.Decision == schemas.DecideSetState; there {
					value = fmt.Sprint(op.Write.EventID)
				}
			}
			if op.Decision == schemas.DecideSetState && repeated < 0 {
				var want schemas.Payload
				if wasThere {
					want = schemas.Payload(`"` + was + `"`)
				}
				if got.Changed != op.Require.Holds(want, wasThere) {
					t.Fatalf("%+v on %q (%v): got %+v", op, was, wasThere, got)
				}
			}
			seen := states.Do(r, get(), 1)
			if there && string(seen.Value) != `"`+value+`"` || !there && (seen.Value != nil || seen.Revision != 0) {
				t.Fatalf("got %+v, want %q (%v)", seen, value, there)
			}
		}
	})
}

package keyed_test

import (
	"slices"
	"testing"

	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/schemas"
)

func written(wid string, event int64) schemas.StateWrite {
	return schemas.StateWrite{WorkflowID: wid, Run: wid + "-run", EventID: event}
}

// record is one with these writes, as it was read with a revision.
func record(writes ...schemas.StateWrite) *schemas.StateRecord {
	r := &schemas.StateRecord{Unsettled: slices.Clone(writes)}
	for i := range r.Unsettled {
		r.Unsettled[i].Revision = 7
	}
	return r
}

// left returns the ids of the workflows whose writes are in a record.
func left(r *schemas.StateRecord) (wids []string) {
	for i := range r.Unsettled {
		wids = append(wids, r.Unsettled[i].WorkflowID)
	}
	return wids
}

func all(string) bool { return true }

func TestSettledWritesAreTakenOutWithTheNextWrite(t *testing.T) {
	var k keyed.Writes
	k.Settled(written("a", 1))
	r := record(written("a", 1), written("b", 1))
	if k.Begin(r) {
		t.Error("a try for itself has changed the record")
	}
	k.TakeOut(r)
	if got := left(r); !slices.Equal(got, []string{"b"}) {
		t.Errorf("left are %q", got)
	}
	if k.Idle() {
		t.Error("a try is on its way, and nothing is remembered")
	}
	k.End(r)
	if !k.Idle() || k.Left() {
		t.Error("a write that is gone is remembered")
	}
}

func TestSettledWritesAreTakenOutForThemselves(t *testing.T) {
	var k keyed.Writes
	k.Settled(written("a", 1))
	k.Tidy()
	if !k.Pending() {
		t.Error("nothing calls for a try")
	}
	if r := record(written("a", 1)); !k.Begin(r) || len(r.Unsettled) > 0 || k.Pending() {
		t.Errorf("left are %q, pending is %v", left(r), k.Pending())
	}
	// The write is refused, and the next try reads the record as it was.
	if r := record(written("a", 1)); !k.Begin(r) || len(r.Unsettled) > 0 {
		t.Errorf("left are %q at the second try", left(r))
	}
	k.End(record())
	if !k.Idle() {
		t.Error("not at rest")
	}
}

func TestFullRecordIsTidied(t *testing.T) {
	var k keyed.Writes
	k.Settled(written("a", 1))
	r := record()
	for i := range int64(schemas.MaxStateWrites) {
		r.Unsettled = append(r.Unsettled, written("a", i+1))
	}
	if !k.Begin(r) || len(r.Unsettled) != schemas.MaxStateWrites-1 {
		t.Errorf("%d writes are left", len(r.Unsettled))
	}
}

func TestManySettledWritesDoNotWait(t *testing.T) {
	var k keyed.Writes
	for i := range int64(100) {
		if k.Settled(written("a", i)) {
			return
		}
	}
	t.Error("a hundred settled writes wait for the next writer")
}

// The writes of former owners are looked up once, those of other partitions never.
func TestWritesOfFormerOwnersAreLookedUp(t *testing.T) {
	var k keyed.Writes
	ours := func(wid string) bool { return wid != "other" }
	r := record(written("a", 1), written("b", 1), written("other", 1), written("mine", 1))
	k.Settled(written("mine", 1))
	k.Begin(record(r.Unsettled...))
	k.End(r)
	if got := k.Unknown(r, ours); got != nil {
		t.Errorf("%v are looked up before it is time", got)
	}
	r.Cleared = true // the key could go
	want := []schemas.StateWrite{written("a", 1), written("b", 1)}
	if got := k.Unknown(r, ours); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := k.Unknown(r, ours); got != nil {
		t.Errorf("%v are looked up twice", got)
	}
	k.Settled(written("a", 1))
	k.Unanswered(written("b", 1))
	if got := k.Unknown(r, ours); !slices.Equal(got, want[1:]) {
		t.Errorf("got %v, want that of which it was not known", got)
	}
}

func TestWritesAreLookedUpWhenAKeyIsTidied(t *testing.T) {
	var k keyed.Writes
	k.Tidy()
	r := record(written("a", 1))
	k.Begin(r)
	k.End(r)
	if got := k.Unknown(r, all); !slices.Equal(got, []schemas.StateWrite{written("a", 1)}) {
		t.Errorf("got %v", got)
	}
	k.Settled(written("a", 1))
	if got := k.Unknown(r, all); got != nil || k.Idle() {
		t.Errorf("got %v, idle is %v", got, k.Idle())
	}
}

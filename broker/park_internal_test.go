package broker

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/droverhq/drover/schemas"
)

// What is kept of a parked run comes back as it was, and its key is its workflow id.
func TestParkedIsPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := parked{
			run: rapid.StringN(0, 30, -1).Draw(t, "run"), sequence: rapid.Uint64Range(1, math.MaxUint64>>3).Draw(t, "sequence"),
			alarm: rapid.Uint64().Draw(t, "alarm"), due: schemas.Timestamp(rapid.Int64().Draw(t, "due")), whole: rapid.Bool().Draw(t, "whole"),
		}
		k.snapshot = rapid.Uint64Range(0, k.sequence).Draw(t, "snapshot")
		wid := rapid.String().Draw(t, "workflow id")
		key, rest := k.pack(wid)
		if key != wid {
			t.Fatalf("got key %q, want %q", key, wid)
		}
		if diff := cmp.Diff(&k, unpack(rest), cmp.AllowUnexported(parked{})); diff != "" {
			t.Fatalf("(-kept +read):\n%s", diff)
		}
	})
}

// A sleeper costs few bytes beside the names of its workflow and its run.
func TestParkedIsSmall(t *testing.T) {
	k := parked{run: "01JABCDEFGHJKMNPQRSTVWXYZ0", sequence: 123_456, alarm: 98_765, due: schemas.Timestamp(1_795_291_216_840_605_119), whole: true}
	_, rest := k.pack("sleeper-12345")
	if got := len(rest) - len(k.run); got > 18 {
		t.Errorf("got %d bytes beside the run id, want at most 18", got)
	}
}

package deadlines

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/droverhq/drover/schemas"
)

// What is kept of a parked run comes back as it was.
func TestPassiveIsPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := Run{
			RunID: rapid.StringMatching(`[!-~]{0,30}|[0-7][0-9A-HJKMNP-TV-Z]{25}`).Draw(t, "run"), Sequence: rapid.Uint64Min(1).Draw(t, "sequence"),
			Alarm: rapid.Uint64().Draw(t, "alarm"), Worker: rapid.Uint64().Draw(t, "hand"), Due: schemas.Timestamp(rapid.Int64().Draw(t, "due")), Complete: rapid.Bool().Draw(t, "whole"),
		}
		if some := rapid.SliceOfN(rapid.Int64Range(1, math.MaxInt64), 0, 3).Draw(t, "delayed"); len(some) > 0 {
			k.Delayed = some
		}
		if k.Complete {
			k.Mark, k.At = rapid.Uint64().Draw(t, "mark"), schemas.Timestamp(rapid.Int64().Draw(t, "at"))
		}
		if diff := cmp.Diff(&k, unpack(k.pack(nil)), cmp.AllowUnexported(Run{})); diff != "" {
			t.Fatalf("(-kept +read):\n%s", diff)
		}
	})
}

// A sleeper costs few bytes beside the name of its workflow.
func TestPassiveIsSmall(t *testing.T) {
	k := Run{RunID: "01JABCDEFGHJKMNPQRSTVWXYZ0", Sequence: 123_456, Alarm: 98_765, Worker: 1, Due: schemas.Timestamp(1_795_291_216_840_605_119), Complete: true}
	k.At, k.Mark = k.Due.Add(-schemas.Duration(time.Minute)), 1<<63
	if got := len(k.pack(nil)); got > 49 {
		t.Errorf("got %d bytes, want at most 49", got)
	}
}

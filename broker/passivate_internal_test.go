package broker

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/internal/compactmap"
	"github.com/droverhq/drover/schemas"
)

// What is kept of a parked run comes back as it was.
func TestPassiveIsPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := passiveRun{
			run: rapid.StringMatching(`[!-~]{0,30}|[0-7][0-9A-HJKMNP-TV-Z]{25}`).Draw(t, "run"), sequence: rapid.Uint64Range(1, math.MaxUint64>>4).Draw(t, "sequence"),
			alarm: rapid.Uint64().Draw(t, "alarm"), hand: rapid.Uint64().Draw(t, "hand"), due: schemas.Timestamp(rapid.Int64().Draw(t, "due")), complete: rapid.Bool().Draw(t, "whole"),
		}
		if some := rapid.SliceOfN(rapid.Int64Range(1, math.MaxInt64), 0, 3).Draw(t, "delayed"); len(some) > 0 {
			k.delayed = some
		}
		k.snapshot = rapid.Uint64Range(0, k.sequence).Draw(t, "snapshot")
		if k.complete {
			k.mark, k.at = rapid.Uint64().Draw(t, "mark"), schemas.Timestamp(rapid.Int64().Draw(t, "at"))
		} else if n := rapid.IntRange(0, runs.MostRecords).Draw(t, "records"); n > 0 && k.sequence > runs.MostRecords {
			k.recordIndex = make(runs.RecordIndex, n)
			for i, before := n-1, k.sequence; i >= 0; i-- {
				k.recordIndex[i] = before
				before -= rapid.Uint64Range(1, k.sequence/runs.MostRecords).Draw(t, "apart")
			}
		}
		if diff := cmp.Diff(&k, unpack(k.pack(nil)), cmp.AllowUnexported(passiveRun{})); diff != "" {
			t.Fatalf("(-kept +read):\n%s", diff)
		}
	})
}

// A sleeper costs few bytes beside the name of its workflow.
func TestPassiveIsSmall(t *testing.T) {
	k := passiveRun{run: "01JABCDEFGHJKMNPQRSTVWXYZ0", sequence: 123_456, alarm: 98_765, hand: 1, due: schemas.Timestamp(1_795_291_216_840_605_119), complete: true}
	k.at, k.mark = k.due.Add(-schemas.Duration(time.Minute)), 1<<63
	if got := len(k.pack(nil)); got > 49 {
		t.Errorf("got %d bytes, want at most 49", got)
	}
}

// A run is parked only if all is known that must be: which record is its last, and that no alarm stands of which nothing is known. Of an
// alarm that is ringing nothing is kept, since its worker deletes it.
func TestWhatIsKeptOfAnAlarm(t *testing.T) { // P-10, I15
	for _, tc := range []struct {
		name   string
		change func(*run)
		alarm  uint64
		kept   bool
	}{
		{"armed", func(*run) {}, 7, true},
		{"ringing", func(r *run) { r.alarm.firing = true }, 0, true},
		{"strange", func(r *run) { r.alarm.strange = true }, 0, false},
		{"of a run without a record", func(r *run) { r.end.Sequence = 0 }, 0, false},
		{"of a run that has ended", func(r *run) { r.state.Status = schemas.StatusCompleted }, 0, false},
	} {
		p, r := &partition{passive: compactmap.New[struct{}](compactmap.MaxLen)}, openRun()
		r.alarm = alarm{due: 100, seq: 7}
		tc.change(r)
		p.passivate(r)
		back := &run{wid: r.wid}
		p.activate(back)
		if (back.passive != nil) != tc.kept || tc.kept && back.passive.alarm != tc.alarm {
			t.Errorf("an alarm %s: kept %+v, want one: %v, with alarm %d", tc.name, back.passive, tc.kept, tc.alarm)
		}
	}
}

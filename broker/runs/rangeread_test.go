package runs

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/schemas"
)

func recordOf(t testing.TB, wid string) []byte {
	t.Helper()
	return encoded(t, &schemas.Record{WorkflowID: wid, Run: "r1", First: 1, Events: []schemas.Event{
		{ID: 1, Time: 1, Attributes: &schemas.WorkflowStarted{WorkflowID: wid, WorkflowType: "order", Run: "r1"}},
	}})
}

// mark is that of a record.
func mark(body []byte) uint64 {
	hash := sha256.Sum256(body)
	return MarkOf(hash[:])
}

// A run takes its own last record from a read, whatever is missing between, and nothing else.
func TestRunFindsItsRecord(t *testing.T) {
	v, w, x := recordOf(t, "v"), recordOf(t, "w"), recordOf(t, "x")
	for _, tc := range []struct {
		name   string
		from   uint64
		bodies [][]byte
		last   uint64
		want   bool
	}{
		{"nothing", 7, nil, 0, false},
		{"its record alone", 7, [][]byte{w}, 7, true},
		{"its record among others", 6, [][]byte{v, w, x}, 8, true},
		{"its record after a gap", 5, [][]byte{v, w, x}, 8, true},
		{"others only", 6, [][]byte{v, x}, 8, false},
		{"another at its sequence", 7, [][]byte{x}, 7, false},
		{"its record at another sequence", 6, [][]byte{w, x}, 7, false},
	} {
		st := &RangeRead{From: tc.from, End: 9}
		st.Fill(tc.bodies, tc.last)
		got, hash := st.Take(7, mark(w))
		if (got != nil) != tc.want || tc.want && (!bytes.Equal(got, w) || MarkOf(hash) != mark(w)) {
			t.Errorf("%s: got %q with hash %x, want it %v", tc.name, got, hash, tc.want)
		}
		if got, _ := st.Take(7, mark(w)); got != nil {
			t.Errorf("%s: given away twice", tc.name)
		}
	}
}

// What is read of a run by its last record is its last record, or an error that says which it is.
func TestFromRecord(t *testing.T) {
	w := recordOf(t, "w")
	hash := sha256.Sum256(w)
	l, err := FromRecord("w", "r1", w, hash[:], 7, 99)
	if err != nil || l.Sequence != 7 || l.At != 99 || l.State.WorkflowID != "w" || !l.Complete || !bytes.Equal(l.Hash, hash[:]) {
		t.Fatalf("got %+v, %v", l, err)
	}
	for name, body := range map[string][]byte{"not a record": {0xc1}, "another run's": recordOf(t, "x")} {
		if _, err := FromRecord("w", "r1", body, hash[:], 7, 99); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v, want that the history is damaged", name, err)
		}
	}
}

// Whichever messages are missing, whoever looks for one that is there finds it, and nobody finds another's.
func TestRangeReadWithGaps(t *testing.T) {
	all := make([][]byte, 12)
	for i := range all {
		all[i] = recordOf(t, string(rune('a'+i)))
	}
	rapid.Check(t, func(t *rapid.T) {
		there := rapid.SliceOfN(rapid.Bool(), len(all), len(all)).Draw(t, "there")
		from := rapid.Uint64Range(1, 1<<40).Draw(t, "from")
		var bodies [][]byte
		var last uint64
		for i, yes := range there {
			if yes {
				bodies, last = append(bodies, all[i]), from+uint64(i)
			}
		}
		st := &RangeRead{From: from, End: from + uint64(len(all))}
		st.Fill(bodies, last)
		for _, i := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).Draw(t, "order") {
			got, _ := st.Take(from+uint64(i), mark(all[i]))
			if there[i] != bytes.Equal(got, all[i]) || !there[i] && got != nil {
				t.Fatalf("record %d of %v: got %q", i, there, got)
			}
		}
	})
}

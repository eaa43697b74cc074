package broker

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
	body, err := schemas.Marshal(&schemas.Record{WorkflowID: wid, Run: "r1", First: 1, Events: []schemas.Event{
		{ID: 1, Time: 1, Attributes: &schemas.WorkflowStarted{WorkflowID: wid, WorkflowType: "order", Run: "r1"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func passiveAt(seq uint64, body []byte) *passiveRun {
	hash := sha256.Sum256(body)
	return &passiveRun{run: "r1", sequence: seq, complete: true, mark: markOf(hash[:]), at: 99}
}

// A sleeper takes its own last record from a read, whatever is missing between, and nothing else.
func TestSleeperFindsItsRecord(t *testing.T) {
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
		{"its record behind a gap", 5, [][]byte{v, w, x}, 8, true},
		{"others only", 6, [][]byte{v, x}, 8, false},
		{"another at its sequence", 7, [][]byte{x}, 7, false},
		{"its record at another sequence", 6, [][]byte{w, x}, 7, false},
	} {
		p := &partition{}
		st := &rangeRead{from: tc.from, end: 9}
		p.rangeReadCame(st, tc.bodies, tc.last, nil)
		k := passiveAt(7, w)
		got, hash := st.take(k)
		if (got != nil) != tc.want || tc.want && (!bytes.Equal(got, w) || markOf(hash) != k.mark) {
			t.Errorf("%s: got %q with hash %x, want it %v", tc.name, got, hash, tc.want)
		}
		if got, _ := st.take(k); got != nil {
			t.Errorf("%s: given away twice", tc.name)
		}
	}
}

// What is read of a parked run is its last record, or an error that says which it is.
func TestUnfold(t *testing.T) {
	w := recordOf(t, "w")
	hash := sha256.Sum256(w)
	l, err := passiveAt(7, w).unfold("w", w, hash[:])
	if err != nil || l.sequence != 7 || l.at != 99 || l.state.WorkflowID != "w" || !l.complete || !bytes.Equal(l.hash, hash[:]) {
		t.Fatalf("got %+v, %v", l, err)
	}
	for name, body := range map[string][]byte{"not a record": {0xc1}, "another run's": recordOf(t, "x")} {
		if _, err := passiveAt(7, body).unfold("w", body, hash[:]); !errors.Is(err, errDamaged) {
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
		st := &rangeRead{from: from, end: from + uint64(len(all))}
		(&partition{}).rangeReadCame(st, bodies, last, nil)
		for _, i := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).Draw(t, "order") {
			got, _ := st.take(passiveAt(from+uint64(i), all[i]))
			if there[i] != bytes.Equal(got, all[i]) || !there[i] && got != nil {
				t.Fatalf("record %d of %v: got %q", i, there, got)
			}
		}
	})
}

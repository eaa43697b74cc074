package chaos

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// at gives each operation its times: call, return.
func at(call, end int64, o Op) Op {
	o.Call, o.Return = call, end
	if o.Outcome == "" {
		o.Outcome = OK
	}
	return o
}

// What a correct service does is believed, and what one that loses, doubles, forks or overlaps does is not.
func TestModels(t *testing.T) {
	list := func(values ...string) Op { return Op{Kind: Final, Key: "r", Values: values} }
	add := func(v string) Op { return Op{Kind: Append, Key: "r", Arg: v} }
	start := func(run string) Op { return Op{Kind: Start, Key: "w", Arg: run, Result: run} }
	use := func(client int, n uint64) Op { return Op{Kind: Use, Client: client, Key: "c", N: n} }
	take := func(client int, n uint64) Op { return Op{Kind: Take, Client: client, Key: "c", N: n} }
	unknown := func(o Op) Op { o.Outcome = Unknown; return o }
	failed := func(o Op) Op { o.Outcome = Failed; return o }
	for _, tt := range []struct {
		name string
		ops  []Op
		good bool
	}{
		{"list: in order", []Op{at(1, 2, add("a")), at(3, 4, add("b")), at(5, 6, list("a", "b"))}, true},
		{"list: at once, either order", []Op{at(1, 4, add("a")), at(2, 3, add("b")), at(5, 6, list("b", "a"))}, true},
		{"list: unknown, and there", []Op{at(1, 2, unknown(add("a"))), at(5, 6, list("a"))}, true},
		{"list: unknown, and not there", []Op{at(1, 2, unknown(add("a"))), at(5, 6, list())}, true},
		{"list: unknown, and late", []Op{at(1, 2, unknown(add("a"))), at(3, 4, add("b")), at(5, 6, list("b", "a"))}, true},
		{"list: a lost signal", []Op{at(1, 2, add("a")), at(3, 4, add("b")), at(5, 6, list("b"))}, false},
		{"list: a doubled signal", []Op{at(1, 2, add("a")), at(5, 6, list("a", "a"))}, false},
		{"list: an unknown one doubled", []Op{at(1, 2, unknown(add("a"))), at(5, 6, list("a", "a"))}, false},
		{"list: out of order", []Op{at(1, 2, add("a")), at(3, 4, add("b")), at(5, 6, list("b", "a"))}, false},
		{"list: nobody sent it", []Op{at(1, 2, add("a")), at(5, 6, list("a", "x"))}, false},
		{"list: seen, and gone", []Op{at(1, 2, add("a")), at(3, 4, Op{Kind: Peek, Key: "r", Values: []string{"a"}}), at(1, 9, unknown(add("b"))), at(5, 6, list("b", "a"))}, false},
		{"list: seen, and kept", []Op{at(1, 2, add("a")), at(1, 2, add("b")), at(3, 4, Op{Kind: Peek, Key: "r", Values: []string{"b"}}), at(5, 6, list("b", "a"))}, true},

		{"flag: set and reset", []Op{at(1, 2, Op{Kind: Set, Key: "r", Arg: "a"}), at(3, 4, Op{Kind: Reset, Key: "r", Arg: "b"}), at(5, 6, Op{Kind: Log, Key: "r", Values: []string{"a", "b"}})}, true},
		{"flag: set twice is once", []Op{at(1, 4, Op{Kind: Set, Key: "r", Arg: "a"}), at(2, 3, Op{Kind: Set, Key: "r", Arg: "b"}), at(5, 6, Op{Kind: Log, Key: "r", Values: []string{"b"}})}, true},
		{"flag: a stale read", []Op{at(1, 2, Op{Kind: Set, Key: "r", Arg: "a"}), at(5, 6, Op{Kind: Log, Key: "r"})}, false},
		{"flag: both won", []Op{at(1, 4, Op{Kind: Set, Key: "r", Arg: "a"}), at(2, 3, Op{Kind: Set, Key: "r", Arg: "b"}), at(5, 6, Op{Kind: Log, Key: "r", Values: []string{"a", "b"}})}, false},
		{"flag: refused without a reason", []Op{at(1, 2, failed(Op{Kind: Set, Key: "r", Arg: "a"})), at(5, 6, Op{Kind: Log, Key: "r"})}, false},
		{"flag: a read of what was taken back", []Op{at(1, 2, unknown(Op{Kind: Set, Key: "r", Arg: "a"})), at(3, 4, Op{Kind: Log, Key: "r", Values: []string{"a"}}), at(5, 6, Op{Kind: Log, Key: "r"})}, false},

		{"start: one wins", []Op{at(1, 4, start("1")), at(2, 3, failed(Op{Kind: Start, Key: "w", Arg: "2", Result: "1"}))}, true},
		{"start: the other joins", []Op{at(1, 4, start("1")), at(2, 3, Op{Kind: Start, Key: "w", Arg: "2", Result: "1"})}, true},
		{"start: again after an end", []Op{at(1, 2, start("1")), at(3, 4, Op{Kind: End, Key: "w", Arg: "1"}), at(5, 6, start("2")), at(7, 8, Op{Kind: Open, Key: "w", Result: "2"})}, true},
		{"start: an unknown one was it", []Op{at(1, 2, unknown(start("1"))), at(3, 4, failed(Op{Kind: Start, Key: "w", Arg: "2", Result: "1"}))}, true},
		{"start: an unknown end was it", []Op{at(1, 2, start("1")), at(3, 4, unknown(Op{Kind: End, Key: "w", Arg: "1"})), at(5, 6, start("2"))}, true},
		{"start: joined, and begun when the other had ended", []Op{at(1, 2, start("1")), at(3, 4, Op{Kind: Start, Key: "w", Arg: "2", Result: "1"}), at(5, 6, Op{Kind: End, Key: "w", Arg: "1"}), at(7, 8, Op{Kind: Open, Key: "w", Result: "2"})}, true},
		{"start: joined, and begun beside the other", []Op{at(1, 2, start("1")), at(3, 4, Op{Kind: Start, Key: "w", Arg: "2", Result: "1"}), at(7, 8, Op{Kind: Open, Key: "w", Result: "2"})}, false},
		{"start: forked", []Op{at(1, 2, start("1")), at(3, 4, start("2"))}, false},
		{"start: forked at once", []Op{at(1, 4, start("1")), at(2, 3, start("2"))}, false},
		{"start: refused by nobody", []Op{at(1, 2, failed(Op{Kind: Start, Key: "w", Arg: "2", Result: "1"}))}, false},
		{"start: forgotten", []Op{at(1, 2, start("1")), at(3, 4, Op{Kind: Open, Key: "w"})}, false},
		{"start: ended and still open", []Op{at(1, 2, start("1")), at(3, 4, Op{Kind: End, Key: "w", Arg: "1"}), at(5, 6, Op{Kind: Open, Key: "w", Result: "1"})}, false},

		{"claim: one after the other", []Op{at(1, 2, take(1, 5)), at(3, 4, use(1, 5)), at(5, 6, take(2, 9)), at(7, 8, use(2, 9))}, true},
		{"claim: the last use meets the next take", []Op{at(1, 2, take(1, 5)), at(3, 7, use(1, 5)), at(5, 6, take(2, 9))}, true},
		{"claim: overlap", []Op{at(1, 2, take(1, 5)), at(3, 4, take(2, 9)), at(5, 6, use(1, 5)), at(7, 8, use(2, 9))}, false},
		{"claim: a number again", []Op{at(1, 2, take(1, 5)), at(3, 4, take(2, 5))}, false},
		{"claim: numbers fall", []Op{at(1, 2, take(1, 5)), at(3, 4, take(2, 4))}, false},
		{"claim: used and never taken", []Op{at(1, 2, take(1, 5)), at(3, 4, use(2, 5))}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			v := Check(tt.ops, CheckOptions{Dir: dir})
			if good := len(v.Violations) == 0; good != tt.good || len(v.Undecided) != 0 || v.Keys != 1 {
				t.Fatalf("got %+v, want good %v", v, tt.good)
			}
			// A claim that porcupine refutes comes with a picture.
			if pictures, err := filepath.Glob(filepath.Join(dir, "*.html")); err != nil || tt.good && len(pictures) != 0 {
				t.Fatalf("got %v, %v, want no picture of what is good", pictures, err)
			}
		})
	}
}

func TestRecorderWritesWhatItKeeps(t *testing.T) {
	var file bytes.Buffer
	r := NewRecorder(&file)
	r.Do(Op{Client: 1, Kind: Append, Key: "r", Arg: "a"}, func(o *Op) { o.Outcome = OK })
	r.Do(Op{Client: 2, Kind: Append, Key: "r", Arg: "b"}, func(o *Op) { o.Outcome, o.Error = Unknown, "no answer" })
	r.Do(Op{Client: 2, Kind: Final, Key: "r"}, func(o *Op) { o.Outcome, o.Values = OK, []string{"a"} })
	r.Do(Op{Kind: Probe, Key: "0"}, func(o *Op) { o.Outcome = OK })
	kept, err := r.Ops(0)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadOps(&file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept, read); diff != "" {
		t.Fatalf("operations (-kept +read):\n%s", diff)
	}
	if ok, failed, unknown, _ := r.Counts(); ok != 2 || failed != 0 || unknown != 1 {
		t.Fatalf("got %d ok, %d failed, %d unknown, want 2, 0, 1", ok, failed, unknown)
	}
	for _, o := range kept {
		if o.Call == 0 || o.Return < o.Call {
			t.Fatalf("got %+v, want its times", o)
		}
	}
	if _, err := ReadOps(bytes.NewBufferString("{}\n[")); err == nil {
		t.Fatal("got no error for a damaged recording")
	}
}

func TestPictureOfAViolation(t *testing.T) {
	dir := t.TempDir()
	v := Check([]Op{
		at(1, 2, Op{Kind: Start, Key: "a/b", Arg: "1", Result: "1"}), at(3, 4, Op{Kind: Start, Key: "a/b", Arg: "2", Result: "2"}),
	}, CheckOptions{Dir: dir})
	if len(v.Violations) != 1 {
		t.Fatalf("got %v, want one violation", v.Violations)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "violation-start-a_b.html")); err != nil || len(b) == 0 {
		t.Fatalf("got %d bytes and %v, want a picture", len(b), err)
	}
}

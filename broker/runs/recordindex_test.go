package runs

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

func TestRecordIndex(t *testing.T) {
	var long RecordIndex
	for seq := range uint64(MostRecords) {
		long = long.With(1+seq, seq == 0)
	}
	for name, c := range map[string]struct {
		index RecordIndex
		seq   uint64
		full  bool
		want  RecordIndex
	}{
		"the first":                    {nil, 7, true, RecordIndex{7}},
		"another":                      {RecordIndex{7}, 9, false, RecordIndex{7, 9}},
		"a snapshot":                   {RecordIndex{7, 9}, 12, true, RecordIndex{12}},
		"after what is not known":      {nil, 9, false, nil},
		"too many":                     {long, 99, false, nil},
		"a snapshot after too many":    {long.With(99, false), 100, true, RecordIndex{100}},
		"one more after too many":      {long.With(99, false), 100, false, nil},
		"as many as there is room for": {long[: MostRecords-1 : MostRecords-1], 99, false, append(long[:MostRecords-1:MostRecords-1], 99)},
	} {
		if diff := cmp.Diff(c.want, c.index.With(c.seq, c.full)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, c := range map[string]struct {
		index RecordIndex
		far   bool
	}{
		"unknown": {nil, false}, "one": {RecordIndex{1 << 40}, false}, "beside each other": {RecordIndex{5, 6, 7}, false},
		"near": {RecordIndex{1, 1 + FarApart}, false}, "far": {RecordIndex{1, 2 + FarApart}, true},
		"a few questions for what lies between": {RecordIndex{1, 2, 3, 4 + FarApart}, false}, "far in the end": {RecordIndex{1, 2, 3, 4 + 4*FarApart}, true},
	} {
		if got := c.index.Far(); got != c.far {
			t.Errorf("%s: got far %t, want %t", name, got, c.far)
		}
	}
}

// A record says where the one before it stands: in its headers, by which the server has refused it if that was not so.
func TestFoldBack(t *testing.T) {
	r := namespace(t, 1)
	store := func(run string, h natsconn.Header, body []byte) uint64 { return put(t, r, 0, "w", run, h, body) }
	for name, c := range map[string]struct {
		records int
		silent  int // the record that does not say it
		foreign int // the record before which there is a message that is none
		wrong   int // the record that does not belong after the one before it
		back    bool
	}{
		"one": {records: 1, back: true}, "some": {records: 3, back: true}, "as many as are read one by one": {records: MostRecords, back: true},
		"many": {records: MostRecords + 1}, "one says nothing": {records: 3, silent: 2}, "the last says nothing": {records: 3, silent: 3},
		"no record": {records: 3, foreign: 2}, "another history": {records: 3, wrong: 2},
	} {
		t.Run(name, func(t *testing.T) {
			run := strings.ReplaceAll(name, " ", "-")
			var hash []byte
			var seq, before uint64
			for first := 1; first <= c.records; first++ {
				if first == c.wrong {
					hash = bytes.Repeat([]byte{1}, sha256.Size)
				}
				if first == c.foreign {
					before = store(run, nil, []byte("nobody's"))
				}
				body := encoded(t, &schemas.Record{WorkflowID: "w", Run: run, First: int64(first), Previous: hash, Events: []schemas.Event{
					{ID: int64(first), Attributes: &schemas.WorkflowPaused{Reason: "test"}},
				}})
				h := natsconn.Header{schemas.StatusHeader: {"open"}}
				if first != c.silent {
					natsconn.ExpectLastSubjectSeq(h, before)
				}
				seq = store(run, h, body)
				sum := sha256.Sum256(body)
				hash, before = sum[:], seq
			}
			last, err := r.LastRecord(t.Context(), 0, r.Namespace.History(0, "w", run), true)
			if err != nil {
				t.Fatal(err)
			}
			newest, err := recordIn(last)
			if err != nil {
				t.Fatal(err)
			}
			back := r.foldBack(t.Context(), 0, last, newest)
			if (back != nil) != c.back {
				t.Errorf("folded back: %t, want %t", back != nil, c.back)
			}
			forth, err := r.foldUpTo(t.Context(), 0, last.Subject, 1, last.Seq)
			if c.wrong != 0 {
				if !errors.Is(err, ErrDamaged) {
					t.Errorf("got %v, want ErrDamaged", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if back != nil {
				if diff := cmp.Diff(forth, back, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
					t.Errorf("(-by the subject +back):\n%s", diff)
				}
			}
			l, err := r.Load(t.Context(), 0, "w", run, true)
			if err != nil || l.State.LastID != int64(c.records) || l.Sequence != seq {
				t.Errorf("got %+v and %v, want %d events up to record %d", l, err, c.records, seq)
			}
		})
	}
}

// What a record index leads to is read only if it is the run's: else the subject tells.
func TestRecordIndexThatLeadsAstray(t *testing.T) {
	r := namespace(t, 1)
	var hash []byte
	store := func(run string, first int64, before []byte) uint64 {
		t.Helper()
		body := encoded(t, &schemas.Record{WorkflowID: "w", Run: run, First: first, Previous: before, Events: []schemas.Event{
			{ID: first, Attributes: &schemas.WorkflowPaused{Reason: "test"}},
		}})
		seq := put(t, r, 0, "w", run, natsconn.Header{schemas.StatusHeader: {"open"}}, body)
		sum := sha256.Sum256(body)
		hash = sum[:]
		return seq
	}
	first := store("r", 1, nil)
	next := hash
	var other uint64
	for range 2 * FarApart {
		other = store("other", 1, nil)
	}
	second := store("r", 2, next)
	for name, c := range map[string]struct {
		index RecordIndex
		ok    bool
	}{
		"right":                 {RecordIndex{first, second}, true},
		"to another run":        {RecordIndex{first, other}, false},
		"to nothing":            {RecordIndex{first, second + 1}, false},
		"from nothing":          {RecordIndex{second, second + 2*FarApart}, false},
		"without the beginning": {RecordIndex{first + 1, second}, false},
	} {
		l, err := r.foldRecordIndex(t.Context(), 0, r.Namespace.History(0, "w", "r"), c.index)
		if ok := err == nil && l.Sequence == second && l.State.LastID == 2; ok != c.ok {
			t.Errorf("%s: got %+v and %v, want it read: %t", name, l, err, c.ok)
		}
		l, err = r.LoadKnown(t.Context(), 0, "w", Known{Run: "r", Sequence: second, Records: c.index})
		if err != nil || l.State.LastID != 2 || !l.Records.LeadsTo(second) || l.Records[0] != first {
			t.Errorf("%s: got %+v and %v, want two events", name, l, err)
		}
		for after := range int64(3) {
			events, more, err := r.Events(t.Context(), 0, "w", "r", Span{After: after, Least: 2, Limit: 100, Records: c.index})
			if got := fmt.Sprint(len(events), more, err); got != fmt.Sprint(2-after, false, nil) {
				t.Errorf("%s, after event %d: got %d events, more %t, %v", name, after, len(events), more, err)
			}
		}
		events, more, err := r.Events(t.Context(), 0, "w", "r", Span{Least: 2, Limit: 1, Records: c.index})
		if len(events) != 1 || !more || err != nil || r.pages.get("w", "r", 1) != second {
			t.Errorf("%s: a page of one has %d events, more %t, %v, and the next begins at %d, want %d", name, len(events), more, err, r.pages.get("w", "r", 1), second)
		}
		r.pages = pageIndex{}
	}
	if _, err := r.LoadKnown(t.Context(), 0, "w", Known{Run: "r", Sequence: second + 5, Records: RecordIndex{first, second + 5}}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a last record that is not there: got %v, want ErrDamaged", err)
	}
}

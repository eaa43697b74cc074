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

// A run is read from its last record back, and its pages too, whatever stands there instead: then
// the subject tells.
func TestBackwardsFromTheLastRecord(t *testing.T) { // P-2
	r := namespace(t, 1)
	var hash []byte
	store := func(run string, first int64, previous []byte, before uint64) uint64 {
		t.Helper()
		body := encoded(t, &schemas.Record{WorkflowID: "w", Run: run, First: first, Previous: previous, Events: []schemas.Event{
			{ID: first, Attributes: &schemas.WorkflowPaused{Reason: "test"}},
		}})
		h := natsconn.Header{schemas.StatusHeader: {"open"}}
		natsconn.ExpectLastSubjectSeq(h, before)
		seq := put(t, r, 0, "w", run, h, body)
		sum := sha256.Sum256(body)
		hash = sum[:]
		return seq
	}
	first := store("r", 1, nil, 0)
	next := hash
	var other uint64
	for range 2 * FarApart {
		other = store("other", 1, nil, other)
	}
	second := store("r", 2, next, first)
	for _, last := range []uint64{first, second} {
		l, err := r.LoadKnown(t.Context(), 0, "w", "r", last)
		if want := map[uint64]int64{first: 1, second: 2}[last]; err != nil || l.Sequence != last || l.State.LastID != want {
			t.Errorf("the last record is %d: got %+v and %v, want %d events", last, l, err, want)
		}
	}
	for name, last := range map[string]uint64{"nothing": second + 5, "another run": other} {
		if _, err := r.LoadKnown(t.Context(), 0, "w", "r", last); !errors.Is(err, ErrDamaged) {
			t.Errorf("the last record is %s: got %v, want ErrDamaged", name, err)
		}
	}
	for name, last := range map[string]uint64{"unknown": 0, "right": second, "nothing": second + 5, "another run": other} {
		for after := range int64(3) {
			events, more, err := r.Events(t.Context(), 0, "w", "r", Span{After: after, Least: 2, Limit: 100, Last: last})
			if got := fmt.Sprint(len(events), more, err); got != fmt.Sprint(2-after, false, nil) {
				t.Errorf("%s, after event %d: got %d events, more %t, %v", name, after, len(events), more, err)
			}
		}
		events, more, err := r.Events(t.Context(), 0, "w", "r", Span{Least: 2, Limit: 1, Last: last})
		if len(events) != 1 || !more || err != nil || r.pages.get("w", "r", 1) != second {
			t.Errorf("%s: a page of one has %d events, more %t, %v, and the next begins at %d, want %d", name, len(events), more, err, r.pages.get("w", "r", 1), second)
		}
		r.pages = pageIndex{}
	}
}

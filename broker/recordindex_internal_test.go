package broker

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

func TestRecordIndex(t *testing.T) {
	var long recordIndex
	for seq := range uint64(mostRecordIndex) {
		long = long.with(1+seq, seq == 0)
	}
	for name, c := range map[string]struct {
		recordIndex recordIndex
		seq         uint64
		whole       bool
		want        recordIndex
	}{
		"the first":                    {nil, 7, true, recordIndex{7}},
		"another":                      {recordIndex{7}, 9, false, recordIndex{7, 9}},
		"a snapshot":                   {recordIndex{7, 9}, 12, true, recordIndex{12}},
		"behind what is not known":     {nil, 9, false, nil},
		"too many":                     {long, 99, false, nil},
		"a snapshot behind too many":   {long.with(99, false), 100, true, recordIndex{100}},
		"one more behind too many":     {long.with(99, false), 100, false, nil},
		"as many as there is room for": {long[: mostRecordIndex-1 : mostRecordIndex-1], 99, false, append(long[:mostRecordIndex-1:mostRecordIndex-1], 99)},
	} {
		if diff := cmp.Diff(c.want, c.recordIndex.with(c.seq, c.whole)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, c := range map[string]struct {
		recordIndex recordIndex
		far         bool
	}{
		"unknown": {nil, false}, "one": {recordIndex{1 << 40}, false}, "beside each other": {recordIndex{5, 6, 7}, false},
		"near": {recordIndex{1, 1 + farApart}, false}, "far": {recordIndex{1, 2 + farApart}, true},
		"a few questions for what lies between": {recordIndex{1, 2, 3, 4 + farApart}, false}, "far in the end": {recordIndex{1, 2, 3, 4 + 4*farApart}, true},
	} {
		if got := c.recordIndex.far(); got != c.far {
			t.Errorf("%s: got far %t, want %t", name, got, c.far)
		}
	}
}

// A record says where the one before it stands: in its headers, by which the server has refused it if that was not so.
func TestFoldBack(t *testing.T) {
	conn := embeddedtest.Dial(t)
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	b := &Broker{ns: "default", reads: conn}
	b.recordLimit.Store(1 << 20)
	put := func(run string, h natsconn.Header, body []byte) uint64 {
		t.Helper()
		seq, err := conn.PublishSync(t.Context(), b.ns.History(0, "w", run), h, body)
		if err != nil {
			t.Fatal(err)
		}
		return seq
	}
	for name, c := range map[string]struct {
		records int
		silent  int // the record that does not say it
		foreign int // the record before which there is a message that is none
		wrong   int // the record that does not belong behind the one before it
		back    bool
	}{
		"one": {records: 1, back: true}, "some": {records: 3, back: true}, "as many as are read one by one": {records: mostRecordIndex, back: true},
		"many": {records: mostRecordIndex + 1}, "one says nothing": {records: 3, silent: 2}, "the last says nothing": {records: 3, silent: 3},
		"a stray": {records: 3, foreign: 2}, "another history": {records: 3, wrong: 2},
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
					before = put(run, nil, []byte("nobody's"))
				}
				body, err := schemas.Marshal(&schemas.Record{WorkflowID: "w", Run: run, First: int64(first), Previous: hash, Events: []schemas.Event{
					{ID: int64(first), Attributes: &schemas.WorkflowPaused{Reason: "test"}},
				}})
				if err != nil {
					t.Fatal(err)
				}
				h := natsconn.Header{schemas.StatusHeader: {"open"}}
				if first != c.silent {
					natsconn.ExpectLastSubjectSeq(h, before)
				}
				seq = put(run, h, body)
				sum := sha256.Sum256(body)
				hash, before = sum[:], seq
			}
			last, err := conn.LastBySubject(t.Context(), b.ns.StreamHistory(0), b.ns.History(0, "w", run))
			if err != nil {
				t.Fatal(err)
			}
			newest, err := recordIn(last)
			if err != nil {
				t.Fatal(err)
			}
			back := b.foldBack(t.Context(), 0, last, newest)
			if (back != nil) != c.back {
				t.Errorf("folded back: %t, want %t", back != nil, c.back)
			}
			forth, err := b.foldUpTo(t.Context(), 0, last.Subject, 1, last.Seq)
			if c.wrong != 0 {
				if !errors.Is(err, errDamaged) {
					t.Errorf("got %v, want errDamaged", err)
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
			l, err := b.loadRun(t.Context(), 0, "w", run, true)
			if err != nil || l.state.LastID != int64(c.records) || l.sequence != seq {
				t.Errorf("got %+v and %v, want %d events up to record %d", l, err, c.records, seq)
			}
		})
	}
}

// What a record index leads to is read only if it is the run's: else the subject tells.
func TestRecordIndexThatLeadsAstray(t *testing.T) {
	conn := embeddedtest.Dial(t)
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	b := &Broker{ns: "default", reads: conn}
	b.recordLimit.Store(1 << 20)
	var hash []byte
	store := func(run string, first int64, before []byte) uint64 {
		t.Helper()
		body, err := schemas.Marshal(&schemas.Record{WorkflowID: "w", Run: run, First: first, Previous: before, Events: []schemas.Event{
			{ID: first, Attributes: &schemas.WorkflowPaused{Reason: "test"}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		seq, err := conn.PublishSync(t.Context(), b.ns.History(0, "w", run), natsconn.Header{schemas.StatusHeader: {"open"}}, body)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(body)
		hash = sum[:]
		return seq
	}
	first := store("r", 1, nil)
	next := hash
	var other uint64
	for range 2 * farApart {
		other = store("other", 1, nil)
	}
	second := store("r", 2, next)
	for name, c := range map[string]struct {
		recordIndex recordIndex
		ok          bool
	}{
		"right":                 {recordIndex{first, second}, true},
		"to another run":        {recordIndex{first, other}, false},
		"to nothing":            {recordIndex{first, second + 1}, false},
		"from nothing":          {recordIndex{second, second + 2*farApart}, false},
		"without the beginning": {recordIndex{first + 1, second}, false},
	} {
		l, err := b.foldRecordIndex(t.Context(), 0, b.ns.History(0, "w", "r"), c.recordIndex)
		if ok := err == nil && l.sequence == second && l.state.LastID == 2; ok != c.ok {
			t.Errorf("%s: got %+v and %v, want it read: %t", name, l, err, c.ok)
		}
		l, err = b.loadPassive(t.Context(), 0, "w", &passiveRun{run: "r", sequence: second, recordIndex: c.recordIndex})
		if err != nil || l.state.LastID != 2 || !l.recordIndex.leadsTo(second) || l.recordIndex[0] != first {
			t.Errorf("%s: got %+v and %v, want two events", name, l, err)
		}
		for after := range int64(3) {
			events, more, err := b.events(t.Context(), 0, "w", "r", after, 0, 2, 100, c.recordIndex)
			if got := fmt.Sprint(len(events), more, err); got != fmt.Sprint(2-after, false, nil) {
				t.Errorf("%s, after event %d: got %d events, more %t, %v", name, after, len(events), more, err)
			}
		}
		events, more, err := b.events(t.Context(), 0, "w", "r", 0, 0, 2, 1, c.recordIndex)
		if len(events) != 1 || !more || err != nil || b.pages.get("w", "r", 1) != second {
			t.Errorf("%s: a page of one has %d events, more %t, %v, and the next begins at %d, want %d", name, len(events), more, err, b.pages.get("w", "r", 1), second)
		}
		b.pages = pageIndex{}
	}
	if _, err := b.loadPassive(t.Context(), 0, "w", &passiveRun{run: "r", sequence: second + 5, recordIndex: recordIndex{first, second + 5}}); !errors.Is(err, errDamaged) {
		t.Errorf("a last record that is not there: got %v, want errDamaged", err)
	}
}

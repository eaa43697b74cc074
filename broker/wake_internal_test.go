package broker

import (
	"testing"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

// A sleeper takes from a read the record that stands at its sequence, if that is one of its own.
func TestSleeperFindsItsRecord(t *testing.T) {
	record := func(seq uint64, wid string) post.Stored {
		body, err := schemas.Marshal(&schemas.Record{WorkflowID: wid, Run: "r1", First: 1, Events: []schemas.Event{
			{ID: 1, Time: 1, Attributes: &schemas.WorkflowStarted{WorkflowID: "w", WorkflowType: "order", Run: "r1"}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return post.Stored{Seq: seq, Subject: "history." + wid, Header: post.Header{schemas.StatusHeader: {"open"}}, Data: body}
	}
	broken, plain := record(7, "w"), record(7, "w")
	broken.Data, plain.Header = []byte{0xc1}, nil
	for _, tc := range []struct {
		name    string
		got     []post.Stored
		found   bool
		damaged bool
	}{
		{"nothing", nil, false, false},
		{"its record alone", []post.Stored{record(7, "w")}, true, false},
		{"its record among others", []post.Stored{record(5, "v"), record(7, "w"), record(8, "x")}, true, false},
		{"others only", []post.Stored{record(5, "v"), record(8, "x")}, false, false},
		{"another run at its sequence", []post.Stored{record(7, "x")}, false, false},
		{"no record at its sequence", []post.Stored{plain}, false, false},
		{"a record that cannot be read", []post.Stored{broken}, false, true},
	} {
		s := sleeper{run: &run{wid: "w", parked: &parked{run: "r1", sequence: 7, whole: true}}, subject: "history.w"}
		s.find(tc.got)
		if found, damaged := s.found != nil, s.err != nil; found != tc.found || damaged != tc.damaged {
			t.Errorf("%s: found %v, error %v; want %v, %v", tc.name, found, s.err, tc.found, tc.damaged)
		}
		if s.found != nil && (s.found.sequence != 7 || s.found.state.WorkflowID != "w" || !s.found.whole) {
			t.Errorf("%s: got record %d of %s", tc.name, s.found.sequence, s.found.state.WorkflowID)
		}
	}
}

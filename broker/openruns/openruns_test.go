package openruns_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/droverhq/drover/broker/openruns"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

const ns = subject.Namespace("default")

func TestRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		records    []string // workflow id, run, header
		open, owes []string
	}{
		"nothing":                   {},
		"open, and the rest":        {records: []string{"w 1 open 4 5 order"}, open: []string{"w 1"}},
		"paused":                    {records: []string{"w 1 open", "w 1 paused"}, open: []string{"w 1"}},
		"closed":                    {records: []string{"w 1 open", "w 1 completed 9 5 order"}},
		"one of two ids":            {records: []string{"v 1 open", "w 1 open", "v 1 failed"}, open: []string{"w 1"}},
		"no record":                 {records: []string{"w 1 open", "w 1 ", "w 2 "}, open: []string{"w 1"}},
		"by their last records":     {records: []string{"v 1 open", "w 1 open", "u 1 open", "v 1 open"}, open: []string{"w 1", "u 1", "v 1"}},
		"continued":                 {records: []string{"w 1 open", "w 1 continuedAsNew"}, owes: []string{"w 1"}},
		"continued and followed":    {records: []string{"w 1 continuedAsNew", "w 2 open"}, open: []string{"w 2"}},
		"the follower has ended":    {records: []string{"w 1 continuedAsNew", "w 2 completed"}},
		"the follower has followed": {records: []string{"w 1 continuedAsNew", "w 2 continuedAsNew"}, owes: []string{"w 2"}},
		"another id goes on":        {records: []string{"w.a 1 continuedAsNew", "w 1 open", "w.a.b 1 open"}, open: []string{"w 1", "w.a.b 1"}, owes: []string{"w.a 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var r openruns.Runs
			for i, line := range tt.records {
				f := strings.SplitN(line, " ", 3)
				r.Note(uint64(i+1), ns.History(3, f[0], f[1]), f[2])
			}
			if diff := cmp.Diff(tt.open, names(t, r.Open())); diff != "" {
				t.Errorf("open (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.owes, names(t, slices.Sorted(r.Owing()))); diff != "" {
				t.Errorf("owing (-want +got):\n%s", diff)
			}
			if got, want := r.Len(), len(tt.open)+len(tt.owes); got != want {
				t.Errorf("got length %d, want %d", got, want)
			}
		})
	}
}

// What lies on a strange subject is kept apart, and nothing panics.
func TestStrangeSubjects(t *testing.T) {
	var r openruns.Runs
	for _, s := range []string{"", ".", "run"} {
		r.Note(1, s, "open")
		r.Note(2, s, "completed")
		r.Note(3, s, "continuedAsNew")
	}
	if got := r.Open(); len(got) > 0 {
		t.Fatalf("got %q open, want none", got)
	}
}

// The same as keeping the last status of each run, and whether it is the last of its workflow id.
func TestRunsAgainstTheLastRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r openruns.Runs
		var seq uint64
		last := map[string]uint64{} // sequence of each subject's last record
		type run struct{ wid, id string }
		status, latest := map[run]schemas.Status{}, map[string]string{}
		statuses := []schemas.Status{schemas.StatusOpen, schemas.StatusPaused, schemas.StatusCompleted, schemas.StatusContinuedAsNew}
		for range rapid.IntRange(0, 40).Draw(t, "records") {
			wid := rapid.SampledFrom([]string{"a", "b", "a.b"}).Draw(t, "workflow")
			if latest[wid] == "" || status[run{wid, latest[wid]}].Closed() {
				latest[wid] += "r" // a run begins when the one before has closed
			}
			s := rapid.SampledFrom(statuses).Draw(t, "status")
			status[run{wid, latest[wid]}] = s
			seq++
			r.Note(seq, ns.History(0, wid, latest[wid]), string(s)+" 1 2 order")
			last[ns.History(0, wid, latest[wid])] = seq
		}
		var open, owing []string
		for k, s := range status {
			switch {
			case !s.Closed():
				open = append(open, ns.History(0, k.wid, k.id))
			case s == schemas.StatusContinuedAsNew && latest[k.wid] == k.id:
				owing = append(owing, ns.History(0, k.wid, k.id))
			}
		}
		slices.SortFunc(open, func(a, b string) int { return int(last[a]) - int(last[b]) })
		slices.Sort(owing)
		if diff := cmp.Diff(open, r.Open(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("open (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(owing, slices.Sorted(r.Owing())); diff != "" {
			t.Fatalf("owing (-want +got):\n%s", diff)
		}
	})
}

// names turns subjects into "workflow run".
func names(t *testing.T, subjects []string) (all []string) {
	t.Helper()
	for _, s := range subjects {
		_, wid, run, err := subject.ParseHistory(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s", wid, run))
	}
	return all
}

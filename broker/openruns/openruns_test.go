package openruns_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/droverhq/drover/broker/openruns"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/memlimit"
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
				if err := r.Note(uint64(i+1), ns.History(3, f[0], f[1]), f[2]); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.open, names(t, slices.Collect(r.Open()))); diff != "" {
				t.Errorf("open (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.owes, names(t, slices.Sorted(r.Owing()))); diff != "" {
				t.Errorf("owing (-want +got):\n%s", diff)
			}
			if got, want := r.Len(), len(tt.open)+len(tt.owes); got != want || r.OpenLen() != len(tt.open) {
				t.Errorf("got length %d, %d of them open; want %d and %d", got, r.OpenLen(), want, len(tt.open))
			}
		})
	}
}

// What lies on a strange subject is kept apart, whatever came first, and nothing panics.
func TestStrangeSubjects(t *testing.T) {
	all := []string{"", ".", "run", "a.b", ns.History(0, "w", "r"), "drover.default.history.0.w.r.more"}
	for first := range all {
		var r openruns.Runs
		order := append(slices.Clone(all[first:]), all[:first]...)
		note := func(header string) {
			for i, s := range order {
				if err := r.Note(uint64(i+1), s, header); err != nil {
					t.Fatal(err)
				}
			}
		}
		note("open")
		if diff := cmp.Diff(order, slices.Collect(r.Open())); diff != "" {
			t.Errorf("from %q on: open (-want +got):\n%s", order[0], diff)
		}
		note("completed")
		note("continuedAsNew")
		if got := slices.Collect(r.Open()); len(got) > 0 {
			t.Errorf("from %q on: got %q open, want none", order[0], got)
		}
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
			if err := r.Note(seq, ns.History(0, wid, latest[wid]), string(s)+" 1 2 order"); err != nil {
				t.Fatal(err)
			}
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
		if diff := cmp.Diff(open, slices.Collect(r.Open()), cmpopts.EquateEmpty()); diff != "" {
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

// What is kept of an open run is small, and nothing is kept of those that have closed.
func TestRunsAreSmall(t *testing.T) {
	const n, each = 50_000, 68 // bytes
	var r openruns.Runs
	note := func(i int, header string) {
		if err := r.Note(uint64(i+1), ns.History(0, fmt.Sprintf("sleeper-%d", i), fmt.Sprintf("01JABCDEFGHJKMNPQRST%06d", i)), header); err != nil {
			t.Fatal(err)
		}
	}
	before := alive()
	for i := range n {
		note(i, "open 4 5 order")
	}
	if got := (alive() - before) / n; got > each {
		t.Errorf("got %d bytes for each of %d open runs, want at most %d", got, n, each)
	}
	for i := range n {
		note(i, "completed 9 5 order")
	}
	if got := alive() - before; got > 256<<10 {
		t.Errorf("got %d bytes after the last, want at most 256 KiB", got)
	}
	runtime.KeepAlive(r)
}

// alive is how many bytes the heap holds.
func alive() int {
	memlimit.Collect()
	return int(memlimit.Read().Live)
}

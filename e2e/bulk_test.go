package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// With more it is the acceptance: go test ./e2e -run TestBulkAfterKills -bulk-runs 10000 -bulk-rate 500 -bulk-kills 2 -timeout 30m
var (
	bulkRuns  = flag.Int("bulk-runs", 120, "e2e: how many runs a bulk job ends while its node is killed")
	bulkRate  = flag.Int("bulk-rate", 60, "e2e: how many a second it ends")
	bulkKills = flag.Int("bulk-kills", 1, "e2e: how often the node is killed")
)

// The node with the role ops is killed with -9 while it carries a bulk job out: each run is terminated exactly once, and the job
// knows of each.
func TestBulkAfterKills(t *testing.T) {
	w := newWorld(t)
	w.embedded("--profile", "dev", "--partitions", "2", "--roles", "broker,timers", "--claim-ttl", shortTTL.String())
	node := func() *process { return w.beside("keeper", "ops", "--claim-ttl", shortTTL.String()) }
	keeper := node()
	all := make([]*drover.Run, *bulkRuns)
	for i := range all {
		all[i] = w.start("nobody-decides", fmt.Sprintf("run-%05d", i), nil, drover.StartOptions{})
	}
	ctx, cancel := w.bounded()
	defer cancel()
	job, err := w.client.Bulk(ctx, ops.BulkTerminate, "type = 'nobody-decides'", &drover.BulkOptions{Rate: *bulkRate, Reason: "test"})
	if err != nil {
		t.Fatal(err)
	}
	limit := patience + time.Duration(*bulkRuns / *bulkRate)*time.Second
	terminated := func() (n int) {
		n, _ = w.counted("nobody-decides", schemas.StatusTerminated)
		return n
	}
	for kill := range *bulkKills {
		want := (kill + 1) * *bulkRuns / (*bulkKills + 2)
		poll.Until(t, limit, fmt.Sprintf("%d runs are terminated", want), func() bool { return terminated() >= want })
		keeper.Kill()
		keeper = node()
	}
	var s ops.BulkState
	poll.Until(t, limit, "the job has ended", func() bool {
		d, err := job.Describe(t.Context())
		return err == nil && d.Execution.Status.Closed()
	})
	o := w.ends(job)
	if err := json.Unmarshal(o.Result, &s); err != nil || o.Status != schemas.StatusCompleted {
		t.Fatalf("the job: %+v, %v", o, err)
	}
	if s.Runs != *bulkRuns || s.Done != *bulkRuns || s.Left != 0 || s.Refused != 0 {
		t.Errorf("got %+v, want %d done", s, *bulkRuns)
	}
	for _, r := range all {
		n := 0
		for _, e := range w.events(r) {
			if e.Type() == schemas.EventWorkflowTerminated {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s was terminated %d times", r.ID, n)
		}
	}
}

// counted is how many runs of a type have a status, as their owners know it.
func (w *world) counted(typ string, status schemas.Status) (n int, whole bool) {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	count, truncated, err := w.client.Count(ctx, drover.ListOptions{Type: typ, Status: status})
	if err != nil {
		w.t.Fatal(err)
	}
	return int(count), !truncated
}

package check

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
)

// Histories that are purged, and kept softly by the master, are neither missed nor read by verify: not those of parents, of children, of
// chains, or of runs that were replayed.
func TestVerifyBesideSoftRuns(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		const ns = subject.Namespace("default")
		j, err := retention.New(retention.Options{Conn: natsconn.Of(e.Client), Namespace: ns, Partitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		w := e.Client.Deciders(nil)
		for _, typ := range []string{"order", "part", "witness"} {
			w.Register(typ, decider.Func(decideSoft))
		}
		e.Go(w)
		run := func(typ, id string) {
			t.Helper()
			r, err := e.Client.Start(t.Context(), typ, nil, &drover.StartOptions{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			e.Wait(r)
		}
		for i := range 5 {
			id := fmt.Sprint("o-", i)
			run("order", id)
			a, err := e.Client.Run(id, "").Replay(t.Context(), &drover.ReplayOptions{From: "start"})
			if err != nil {
				t.Fatal(err)
			}
			e.Wait(a.Run)
		}
		verify := func() *Verification {
			t.Helper()
			r := NewVerifier(e.Client)
			if err := r.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
			return r.judge(true)
		}
		run("witness", "after")
		time.Sleep(10 * time.Minute)
		before := verify()
		if !before.OK || before.Runs != 31 {
			t.Errorf("before the purge: got %+v, want 31 runs without a fault", before)
		}
		r, err := j.Pass(t.Context())
		if err != nil || r.Purged < 20 {
			t.Fatalf("got %+v, %v, want that most are purged", r, err)
		}
		if a, err := j.Soft(&schemas.SoftRequest{WorkflowID: "o-4"}); err != nil || len(a.Records) == 0 {
			t.Errorf("got %+v, %v, want that the last is kept softly", a, err)
		}
		if after := verify(); !after.OK || after.Runs != before.Runs-r.Purged {
			t.Errorf("after the purge of %d: got %+v, want %d runs without a fault", r.Purged, after, before.Runs-r.Purged)
		}
	})
}

// decideSoft starts a child, continues as new after it, and completes, and wants to be kept softly.
func decideSoft(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
	keep := schemas.Decide(&schemas.SetRetention{Retention: "0 soft 9"})
	done := schemas.Decide(&schemas.CompleteWorkflow{})
	for _, e := range task.Events() {
		switch a := e.Attributes.(type) {
		case *schemas.WorkflowStarted:
			switch {
			case a.WorkflowType == "witness":
				return []schemas.Decision{done}, nil
			case a.WorkflowType == "part" || a.ContinuedExecutionRun != "":
				return []schemas.Decision{keep, done}, nil
			}
			return []schemas.Decision{keep, schemas.Decide(&schemas.StartChild{WorkflowID: a.Run + "-part", WorkflowType: "part"})}, nil
		case *schemas.ChildSuccess:
			return []schemas.Decision{schemas.Decide(&schemas.ContinueAsNew{})}, nil
		}
	}
	return nil, nil
}

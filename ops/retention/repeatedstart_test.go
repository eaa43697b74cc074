package retention_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
)

// P-14, doc.go: a run goes when no message for its workflow id is left in either log that was read: a repeated start that was answered
// from its history after its end would begin it again, once that is purged and the logs are read from their beginning.
func TestRepeatedStartInTheInbox(t *testing.T) {
	live(t, retention.Options{Default: "0"}, func(h *house) {
		t := h.t
		ctx := t.Context()
		r, err := h.Client.Start(ctx, "raw", says{}, &drover.StartOptions{ID: "a", RequestID: "q"})
		if err != nil {
			t.Fatal(err)
		}
		h.Wait(r)
		// the requester had no answer, and its second try goes by the inbox, as it does while no owner listens
		body, err := schemas.MarshalJSON(&schemas.StartRequest{V: schemas.Version, WorkflowID: "a", RequestID: "q", Run: r.RunID, Type: "raw"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Client.Conn().PublishSync(ctx, ns.In(0, "a", "start"), post.Header{post.HeaderSubject: {ns.In(0, "a", "start")}}, body); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if n := h.runs("a"); n != 1 {
			t.Fatalf("%d runs", n)
		}
		first := schemas.At(time.Now())
		h.run("other", "witness-1", says{Retention: []string{"forever"}})
		time.Sleep(10 * time.Minute)
		rep := h.pass()
		t.Logf("%+v, kept %q", rep, h.kept())
		if m, err := h.Client.Conn().NextBySubject(ctx, ns.StreamIn(0), ns.AllIn(0), 1); err == nil {
			t.Logf("still in the inbox: %d %s", m.Seq, m.Subject)
		}
		if h.kept() == "a" {
			return // it waits for the message: fine
		}
		// the history loses its end
		v, _, err := h.Client.Conn().KVGet(ctx, ns.BucketCheckpoints(), "partition.0")
		if err != nil {
			t.Fatal(err)
		}
		var c schemas.Checkpoint
		if err := schemas.Unmarshal(v, &c); err != nil {
			t.Fatal(err)
		}
		if err := h.Client.Conn().PurgeSubject(ctx, ns.StreamHistory(0), ns.HistoryOfWorkflow(0, "witness-1")); err != nil {
			t.Fatal(err)
		}
		h.Crash(time.Second)
		time.Sleep(time.Minute)
		d, err := h.Client.Run("a", "").Describe(ctx)
		if err == nil && d.Execution.StartedAt > first {
			t.Errorf("run %s of workflow a, which had completed and was purged, has run a second time: %v at %v", d.Execution.Run, d.Execution.Status, d.Execution.StartedAt)
		}
	})
}

package retention_test

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
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
		if _, err := natsconn.Of(h.Client).PublishSync(ctx, ns.In(0, "a", "start"), natsconn.Header{natsconn.HeaderSubject: {ns.In(0, "a", "start")}}, body); err != nil {
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
		if m, err := natsconn.Of(h.Client).NextBySubject(ctx, ns.StreamIn(0), ns.AllIn(0), 1); err == nil {
			t.Logf("still in the inbox: %d %s", m.Seq, m.Subject)
		}
		if h.kept() == "a" {
			return // it waits for the message: fine
		}
		// the history loses its end
		v, _, err := natsconn.Of(h.Client).KVGet(ctx, ns.BucketCheckpoints(), "partition.0")
		if err != nil {
			t.Fatal(err)
		}
		var c schemas.Checkpoint
		if err := schemas.Unmarshal(v, &c); err != nil {
			t.Fatal(err)
		}
		if err := natsconn.Of(h.Client).PurgeSubject(ctx, ns.StreamHistory(0), ns.HistoryOfWorkflow(0, "witness-1")); err != nil {
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

// P-14: what is stored within the grace and not read, such as a start that is repeated, keeps its run also after another message for the
// workflow id that was read after the close, and that lies in the inbox as the last one there for as long as nothing comes.
func TestUnreadLaterWhatWasRead(t *testing.T) {
	for _, kind := range []string{"start", "pause", "nothing"} {
		t.Run(kind, func(t *testing.T) {
			live(t, retention.Options{Default: "0"}, func(h *house) {
				t, ctx, conn := h.t, h.t.Context(), natsconn.Of(h.Client)
				time.Sleep(5 * time.Second) // between two checkpoints: none comes two minutes later to the millisecond
				run := h.run("raw", "a", says{})
				last, err := conn.LastBySubject(ctx, ns.StreamHistory(0), ns.History(0, "a", run))
				if err != nil {
					t.Fatal(err)
				}
				h.run("other", "witness-1", says{Retention: []string{"forever"}})
				send := func(kind string) uint64 {
					body, err := schemas.MarshalJSON(&schemas.StartRequest{V: schemas.Version, WorkflowID: "a", RequestID: "q", Run: run, Type: "raw"})
					if err != nil {
						t.Fatal(err)
					}
					seq, err := conn.PublishSync(ctx, ns.In(0, "a", kind), natsconn.Addressed(ns.In(0, "a", kind)), body)
					if err != nil {
						t.Fatal(err)
					}
					return seq
				}
				read := send("pause")
				time.Sleep(time.Until(last.Time.Add(2*time.Minute - time.Millisecond)))
				if kind != "nothing" {
					send(kind)
				}
				time.Sleep(2 * time.Millisecond)
				if c := h.position(); c.Inbox.Sequence != read {
					t.Fatalf("the inbox is read up to %d by the checkpoint, want %d", c.Inbox.Sequence, read)
				}
				if m, err := conn.NextBySubject(ctx, ns.StreamIn(0), ns.AllIn(0), 1); err != nil || m.Seq != read {
					t.Fatalf("got %+v, %v, want that message %d lies there", m, err, read)
				}
				r := h.pass()
				if kind == "nothing" { // what was read is no reason
					h.wantKept("")
					return
				}
				if r.Purged != 0 || r.Waiting != 1 {
					t.Errorf("got %+v, want that the run waits", r)
				}
				if a := h.explain("a", run); !strings.Contains(a.Because, "is not read yet") {
					t.Errorf("got %+v, want a message that is not read yet", a)
				}
				h.wantKept("a")
				h.settle()
				h.pass()
				h.wantKept("")
			})
		})
	}
}

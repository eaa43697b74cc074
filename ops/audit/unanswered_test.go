package audit_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/ops/audit"
)

// asking makes audits ask on a connection of their own, on which a question to a stream or to an owner can be lost.
func (h *house) asking() (q *cutwire.Questions, change func(*audit.Options)) {
	h.t.Helper()
	wire := cutwire.New(h.server.Conn())
	conn, err := natsconn.Dial(context.Background(), natsconn.Options{InProcess: wire, Logger: h.log})
	if err != nil {
		h.t.Fatal(err)
	}
	h.stops = append(h.stops, conn.Close)
	q = cutwire.Ask(wire, cutwire.Swallow, "$JS.API.STREAM.", "$JS.API.DIRECT.", ns.API("audit"), ns.API("lists"), ns.API("locks"))
	return q, func(o *audit.Options) { o.Conn, o.Claims = conn, h.claims(conn, "audit") }
}

// kindsOf are the kinds of what was found, with the workflows.
func kindsOf(r *audit.Report) (all []string) {
	for _, f := range r.Findings {
		all = append(all, strings.TrimSpace(string(f.Kind)+" "+f.WorkflowID))
	}
	slices.Sort(all)
	return all
}

// Whatever question of a pass has no answer: where a stream was asked, the pass says that it could not look; where an owner was, it finds
// less. It never takes for gone, or for wanted by nobody, what it could not read.
func TestNoAnswerIsNoFinding(t *testing.T) { // I15, I18
	virtually(t, 1, func(t *testing.T, h *house) {
		h.all()
		h.decider("order", upTo("ActivitySuccess", "["+activityOf("a", "")+"]"))
		h.decider("wait", upTo("TimerFired", `[{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":36000}}]`))
		h.start("healthy", "order")
		healthy := h.take()
		h.start("waits", "wait")
		h.alarm("waits")
		h.start("robbed", "order")
		h.await("robbed", "ActivityScheduled")
		robbed, err := h.conn.NextBySubject(t.Context(), ns.StreamTasks("main"), ns.AllTasks("main"), healthy.seq+1)
		if err != nil {
			t.Fatal(err)
		}
		h.publish(robbed.Subject, `{"v":1,"workflowId":"nobody","run":"R","token":"R.1.1","list":"main"}`)
		h.delete(ns.StreamTasks("main"), robbed.Seq)
		time.Sleep(20 * time.Second)

		q, change := h.asking()
		all := []string{"task-missing robbed", "task-stale nobody", "tasks-wait"}
		if got := kindsOf(h.pass(h.auditor(change, reportOnly))); !slices.Equal(got, all) {
			t.Fatalf("found %q, want %q", got, all)
		}
		errs := 0
		for n := 0; ; n++ {
			a := h.auditor(change, reportOnly)
			var r *audit.Report
			var err error
			lost := q.Without(n, func() { r, err = a.Pass(t.Context(), true) })
			switch asksOwner := strings.HasPrefix(lost, ns.API("")); {
			case err != nil && (lost == "" || asksOwner):
				t.Errorf("without an answer to %q: got %v", lost, err)
			case err != nil:
				errs++
			case !asksOwner && !slices.Equal(kindsOf(r), all):
				t.Errorf("without an answer to %q: found %q and no error", lost, kindsOf(r))
			case asksOwner:
				for _, kind := range kindsOf(r) {
					if !slices.Contains(all, kind) && kind != string(audit.KindOwnerSilent) {
						t.Errorf("without an answer to %q: found %q", lost, kind)
					}
				}
			}
			if lost == "" {
				break
			}
		}
		if errs < 10 {
			t.Errorf("got %d errors, want one for each question to a stream", errs)
		}
	})
}

// A repair without an answer is told as one that failed, and the next pass sees to it.
func TestRepairWithoutAnAnswer(t *testing.T) {
	virtually(t, 1, func(t *testing.T, h *house) {
		h.all()
		h.decider("order", upTo("ActivitySuccess", "["+activityOf("a", "")+"]"))
		h.start("o", "order")
		task := h.take()
		stray := h.publish(ns.Task("main", 0), `{"v":1,"workflowId":"nobody","run":"R","token":"R.1.1","list":"main"}`)
		h.delete(ns.StreamTasks("main"), task.seq)
		time.Sleep(5 * time.Second)
		wire := cutwire.New(h.server.Conn())
		conn, err := natsconn.Dial(context.Background(), natsconn.Options{InProcess: wire, Logger: h.log})
		if err != nil {
			t.Fatal(err)
		}
		h.stops = append(h.stops, conn.Close)
		wire.Judge(func(subject string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subject, "$JS.API.STREAM.MSG.DELETE.") || subject == ns.API("repair") {
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		r := h.pass(h.auditor(func(o *audit.Options) { o.Conn, o.Claims = conn, h.claims(conn, "audit") }))
		h.wantKinds(r, "task-missing", "task-stale")
		for _, f := range r.Findings {
			if f.Failed == "" {
				t.Errorf("%+v: want it to say why it was not repaired", f)
			}
		}
		if _, err := h.conn.GetSeq(t.Context(), ns.StreamTasks("main"), stray); err != nil {
			t.Errorf("the stray task: %v", err)
		}
		h.wantKinds(h.pass(h.auditor()), "task-missing+", "task-stale+", "tasks-wait")
		h.work()
		h.completes("o")
	})
}

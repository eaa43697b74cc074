package broker_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

const startO = `{"workflowId":"o","type":"order","run":"r1","requestId":"q1"}`

// one schedules one activity and completes when it is closed.
func one(more string) func(*decisionTask) string {
	return func(t *decisionTask) string {
		switch {
		case t.has("WorkflowStarted"):
			return "[" + scheduleActivity("a", more) + "]"
		case t.has("ActivitySuccess"), t.has("ActivityFailed"), t.has("ActivityTimedOut"):
			return complete
		}
		return "[]"
	}
}

// slowly is a decider whose answers come too late to stand in one record with what they answer.
func slowly(decide func(*decisionTask) string) func(*decisionTask) string {
	return func(t *decisionTask) string {
		time.Sleep(100 * time.Millisecond)
		return decide(t)
	}
}

var oneActivity = []string{
	"WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ActivityScheduled",
	"ActivityStarted", "ActivitySuccess", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess",
}

func TestEmptyRun(t *testing.T) { // S1-44
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(*decisionTask) string { return complete })
		f.start(startO)
		f.completes("o")
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
	})
}

// Every publish of the owner is a place where it may die. Whatever the place, and whether the message is still sent or
// not, the next owner finishes the run with the same eleven events.
func TestOwnerDiesAtEveryPublish(t *testing.T) { // P-1, P-2
	for _, verdict := range []cutwire.Verdict{cutwire.CutBefore, cutwire.CutAfter} {
		for _, place := range []struct {
			name, prefix string
			n            int
			slow         bool // the decider: then events and decisions stand in records of their own
		}{
			{"record of the start and the first decision", "drover.default.history.0.o.", 1, false},
			{"first decision task", "drover.default.decide.", 1, false},
			{"task", "drover.default.task.main.", 1, false},
			{"second decision task", "drover.default.decide.", 2, false},
			{"record of the outcome and the close", "drover.default.history.0.o.", 2, false},
			{"fence", "drover.default.history.0.fence", 1, false},
			{"checkpoint", "$KV.drover-default-checkpoints.", 1, false},
			{"record of the start", "drover.default.history.0.o.", 1, true},
			{"record of the first decision", "drover.default.history.0.o.", 2, true},
			{"task of a slow decider", "drover.default.task.main.", 1, true},
			{"record of the outcome", "drover.default.history.0.o.", 3, true},
			{"second decision task of a slow decider", "drover.default.decide.", 2, true},
			{"record of the close", "drover.default.history.0.o.", 4, true},
		} {
			name := place.name + map[cutwire.Verdict]string{cutwire.CutBefore: ", not sent", cutwire.CutAfter: ", sent"}[verdict]
			t.Run(name, func(t *testing.T) {
				virtually(t, 1, func(t *testing.T, f *fleet) {
					decide := one("")
					if place.slow {
						decide = slowly(decide)
					}
					f.decider("order", decide)
					a := f.node("a", nth(place.n, place.prefix, verdict))
					replaced := make(chan struct{})
					go func() { // the client repeats what was not answered
						defer close(replaced)
						<-a.wire.Killed()
						a.stop()
						f.node("b", nil)
					}()
					f.start(startO)
					if !f.until(time.Hour, func() bool { // nobody asks for the run
						if k := f.tryPull(time.Second); k != nil {
							k.success()
						}
						return f.status("o").Closed()
					}) {
						t.Fatalf("it does not close: %v", f.recordedTypes("o"))
					}
					<-replaced
					f.wantTypes("o", oneActivity...)
				})
			})
		}
	}
}

// A decider's reply comes by no inbox message. Its record is committed, the owner dies before the task is published; the
// new owner never meets that run in the logs and must repeat the effect all the same.
func TestRepeatsEffectsOfADecision(t *testing.T) { // P-1
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var asked atomic.Int64
		f.decider("order", func(d *decisionTask) string { asked.Add(1); return one("")(d) })
		a := f.node("a", nth(1, "drover.default.task.", cutwire.CutBefore))
		f.start(startO)
		a.waitKilled()
		f.node("b", nil)
		f.pull().success()
		f.completes("o")
		f.wantTypes("o", oneActivity...)
		if asked.Load() != 2 {
			t.Fatalf("the decider was asked %d times, want 2: its first answer was in the history", asked.Load())
		}
	})
}

func TestForeignWriteForksNothing(t *testing.T) { // P-2
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		k := f.pull()
		// Somebody writes into the history stream behind the owner's back; its next commit must be refused, and the
		// message that caused it must not be lost.
		f.publish("drover.default.history.0.stranger.x", `{}`)
		k.success()
		f.completes("o")
		f.wantTypes("o", oneActivity...)
		if err := f.post.PurgeSubject(t.Context(), ns.StreamHistory(0), "drover.default.history.0.stranger.x"); err != nil {
			t.Fatal(err)
		}
	})
}

func TestFenceNeedsALaterClaim(t *testing.T) { // P-2
	virtually(t, 1, func(t *testing.T, f *fleet) {
		fence := func(claim uint64, owner string) error {
			_, err := handover.Fence(t.Context(), f.post, ns, 0, claim, owner)
			return err
		}
		if err := fence(7, "new"); err != nil {
			t.Fatal(err)
		}
		if err := fence(5, "old"); !errors.Is(err, env.ErrNewerFence) {
			t.Fatalf("an older claim fenced after a newer one: %v", err)
		}
		if err := fence(7, "other"); !errors.Is(err, env.ErrNewerFence) {
			t.Fatalf("another owner fenced with the same claim: %v", err)
		}
		if err := fence(7, "new"); err != nil {
			t.Fatalf("the owner could not fence again: %v", err)
		}
		// A fence that was on its way when a later claim wrote another is refused: it would let writes through that the later one refuses.
		wire := cutwire.New(f.server.Load().Conn())
		wire.Delay(time.Second)
		wire.Judge(func(subj string, _ []byte) cutwire.Verdict {
			if subj == ns.Fence(0) {
				return cutwire.Late
			}
			return cutwire.Pass
		})
		slow, late := embeddedtest.Through(t, wire), make(chan error)
		go func() {
			_, err := handover.Fence(t.Context(), slow, ns, 0, 8, "slow")
			late <- err
		}()
		synctest.Wait()
		if err := fence(9, "newest"); err != nil {
			t.Fatal(err)
		}
		if err := <-late; !errors.Is(err, natsconn.ErrWrongSequence) {
			t.Fatalf("got %v for a fence after a later one, want %v", err, natsconn.ErrWrongSequence)
		}
	})
}

// Both expectations stand on every record. The stream's alone lets the second of two pipelined late writes through: the
// fence takes the number that the first one predicted, and the prediction of the second is right again.
func TestEveryCommitNamesItsStreamAndItsRun(t *testing.T) { // P-2
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var commits atomic.Int64
		judge := func(subj string, body []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "drover.default.history.0.o.") {
				n := commits.Add(1)
				for _, header := range []string{"Nats-Expected-Last-Sequence:", "Nats-Expected-Last-Subject-Sequence:"} {
					if !strings.Contains(string(body), header) {
						t.Errorf("commit %d lacks %s", n, header)
					}
				}
			}
			return cutwire.Pass
		}
		a := f.node("a", judge)
		f.decider("order", one(""))
		f.start(startO)
		k := f.pull()
		a.stop()
		f.node("b", judge)
		k.success()
		f.result("o")
		if commits.Load() != 2 {
			t.Fatalf("%d commits, want 2", commits.Load())
		}
	})
}

func TestLateWriteOfAnOldOwnerForksNothing(t *testing.T) { // P-2
	virtually(t, 1, func(t *testing.T, f *fleet) {
		// Two runs whose next records the old owner has pipelined when it is cut off.
		f.decider("order", signaled)
		a := f.node("a", nil)
		f.start(`{"workflowId":"x","type":"order","run":"rx"}`)
		f.await("x", schemas.EventDeciderCompleted)
		time.Sleep(time.Second)
		last, err := f.post.LastBySubject(t.Context(), ns.StreamHistory(0), "drover.default.history.0.x.rx")
		if err != nil {
			t.Fatal(err)
		}
		_, end, err := f.post.StreamState(t.Context(), ns.StreamHistory(0))
		if err != nil {
			t.Fatal(err)
		}
		a.kill()
		f.node("b", nil) // its fence takes end+1
		f.publish("drover.default.signal.x.stop", "")
		f.result("x")
		_, now, err := f.post.StreamState(t.Context(), ns.StreamHistory(0))
		if err != nil {
			t.Fatal(err)
		}
		// Whatever the old owner had predicted for its late write, the run's own subject refuses it.
		for predicted := end; predicted <= now; predicted++ {
			h := natsconn.Header{}
			natsconn.ExpectLastSeq(h, predicted)
			natsconn.ExpectLastSubjectSeq(h, last.Seq)
			if _, err := f.post.PublishSync(t.Context(), "drover.default.history.0.x.rx", h, []byte("late")); !errors.Is(err, natsconn.ErrWrongSequence) {
				t.Fatalf("a late write with the prediction %d: %v", predicted, err)
			}
		}
	})
}

// noCheckpoints makes an owner die without ever having written a position: the next one reads everything again.
func noCheckpoints(subj string, _ []byte) cutwire.Verdict {
	if strings.HasPrefix(subj, "$KV.drover-default-checkpoints.") {
		return cutwire.Swallow
	}
	return cutwire.Pass
}

func TestPositionsBelongToTheWorkflowID(t *testing.T) { // P-3
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", signaled)
		a := f.node("a", noCheckpoints)
		f.start(startO)
		f.publish("drover.default.signal.o.stop", `"A's"`)
		f.result("o")
		f.start(`{"workflowId":"o","type":"order","run":"r2"}`)
		f.await("o", schemas.EventDeciderCompleted)
		a.kill()
		f.node("b", nil)
		f.await("o", schemas.EventDeciderCompleted)
		time.Sleep(30 * time.Second)
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted")
		if dead := f.dead(); len(dead) != 0 {
			t.Fatalf("dead letters %v", dead)
		}
	})
}

func TestStartIsIdempotent(t *testing.T) { // P-5
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", signaled)
		want := func(body, run string, started bool) {
			t.Helper()
			a := f.start(body)
			if a["run"] != run || a["started"] != started || a["error"] != nil {
				t.Fatalf("start %s: %v, want run %s started %v", body, a, run, started)
			}
		}
		want(startO, "r1", true)
		want(startO, "r1", false)                                                             // the same run id
		want(`{"workflowId":"o","type":"order","run":"other","requestId":"q1"}`, "r1", false) // the same request id
		a := f.start(`{"workflowId":"o","type":"order","run":"r2"}`)
		if e, _ := a["error"].(map[string]any); e["code"] != "already_started" || e["run"] != "r1" {
			t.Fatalf("a second start: %v", a)
		}
		f.publish("drover.default.signal.o.stop", "")
		f.result("o")
		want(startO, "r1", false) // also from a closed run
		want(`{"workflowId":"o","type":"order","run":"r2","requestId":"q2"}`, "r2", true)
		want(startO, "r1", false) // and from one that has a successor
		f.await("o", schemas.EventDeciderCompleted)
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted")
	})
}

func TestStartWhoseAnswerIsLost(t *testing.T) { // P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", func(*decisionTask) string { return "[]" })
		a := f.node("a", nil)
		f.api("list", "{}")
		inbox := f.nc.NewInbox()
		a.wire.Judge(nth(1, inbox, cutwire.CutBefore))
		if err := f.nc.PublishRequest("drover.default.api.start", inbox, []byte(startO)); err != nil {
			t.Fatal(err)
		}
		a.waitKilled()
		f.node("b", nil)
		if got := f.start(startO); got["run"] != "r1" || got["error"] != nil {
			t.Fatalf("the repeat got %v", got)
		}
		f.await("o", schemas.EventDeciderCompleted)
	})
}

func TestQuestionsKeepTheirOrder(t *testing.T) { // P-7
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.decider("order", one(`,"notIdempotent":true`))
		f.start(startO)
		k := f.pull()
		if p := k.begin("n1"); !p.Go || p.Attempt != 1 {
			t.Fatalf("the first question: %+v", p)
		}
		// By a new owner, `go` is repeated to the same nonce only.
		a.kill()
		f.node("b", nil)
		if p := k.begin("n1"); !p.Go || p.Attempt != 1 {
			t.Fatalf("the same question to the next owner: %+v", p)
		}
		if p := k.begin("n2"); p.Go {
			t.Fatal("another delivery of a first delivery may not run")
		}
		// The outcome is in the inbox before the redelivery asks.
		k.report("success", `,"result":1`)
		again := f.pull() // after AckWait
		if again.delivered < 2 || again.sequence != k.sequence {
			t.Fatalf("delivered %d times, sequence %d; want a redelivery of %d", again.delivered, again.sequence, k.sequence)
		}
		if p := again.begin("n3"); p.Go {
			t.Fatal("finished work may run again")
		}
		f.result("o")
		f.wantTypes("o", oneActivity...)
	})
}

func TestLostWorkerOfANotIdempotentActivity(t *testing.T) { // P-7
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(`,"notIdempotent":true`))
		f.start(startO)
		if p := f.pull().begin("n1"); !p.Go {
			t.Fatalf("the first question: %+v", p)
		}
		if p := f.pull().begin("n2"); p.Go { // redelivered: the first worker is silent
			t.Fatal("an activity that is not idempotent may run twice")
		}
		f.result("o")
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ActivityScheduled", "ActivityStarted",
			"ActivityInterrupted", "ActivityFailed", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
	})
}

func TestLostWorkerOfAnIdempotentActivity(t *testing.T) { // P-7
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		k := f.pull()
		k.report("started", `,"taskSequence":1,"nonce":"n1"`)
		again := f.pull()
		p := again.begin("n2")
		if !p.Go || p.Attempt != 2 {
			t.Fatalf("the question of the redelivery: %+v", p)
		}
		k.report("success", "") // the first worker was only slow: its token is stale
		again.Token = p.Token
		again.success()
		f.result("o")
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ActivityScheduled", "ActivityStarted",
			"ActivityInterrupted", "ActivityStarted", "ActivitySuccess", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
		if dead := f.dead(); len(dead) != 1 || dead[0] != "stale-token" {
			t.Fatalf("dead letters %v, want the stale outcome", dead)
		}
	})
}

func TestSignalLaterItsStart(t *testing.T) { // P-12
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", signaled)
		// Both are published while nobody runs; whichever log is read first, the signal belongs to the run.
		body, err := schemas.Marshal(&schemas.StartRequest{V: 1, WorkflowID: "o", Run: "r1", Type: "order"})
		if err != nil {
			t.Fatal(err)
		}
		for range 500 { // a backlog before the start
			f.publish("drover.default.in.0.other.alarm", `{"run":"x"}`)
		}
		f.publish("drover.default.in.0.o.start", string(body))
		f.publish("drover.default.signal.o.stop", `{"by":"me"}`)
		f.node("a", nil)
		f.completes("o")
		if dead := f.dead(); len(dead) != 0 {
			t.Fatalf("dead letters %v", dead)
		}
	})
}

// The end of the inbox is known long before it is reached: what stands between may be the start.
func TestSignalLaterAStartThatIsReadLate(t *testing.T) { // P-12
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var puts atomic.Int64
		f.decider("order", signaled)
		f.publish("drover.default.in.0.other.act.main", fmt.Sprintf(`{"token":"r.1.1","kind":"success","result":"%s"}`, strings.Repeat("x", 300<<10)))
		f.publish("drover.default.in.0.o.start", startO)
		f.publish(ns.Signal("o", "go"), "")
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "$O.") && puts.Add(1) == 1 {
				return cutwire.Late // the object store is slow, and with it the reading of the inbox
			}
			return cutwire.Pass
		})
		f.await("o", schemas.EventWorkflowSuccess)
		if puts.Load() == 0 {
			t.Error("nothing held up the inbox")
		}
	})
}

func TestBuriedSignalStaysBuried(t *testing.T) { // P-12
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", func(*decisionTask) string { return "[]" })
		a := f.node("a", noCheckpoints)
		f.publish("drover.default.signal.o.early", "")
		for range 100 {
			if len(f.dead()) > 0 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		a.kill() // before it has noted that the signal is dealt with, and before it reads the start
		body, err := schemas.Marshal(&schemas.StartRequest{V: 1, WorkflowID: "o", Run: "r1", Type: "order"})
		if err != nil {
			t.Fatal(err)
		}
		f.publish("drover.default.in.0.o.start", string(body))
		f.node("b", nil)
		f.await("o", schemas.EventDeciderCompleted)
		time.Sleep(30 * time.Second)
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted")
		if dead := f.dead(); len(dead) != 1 || dead[0] != "unknown-workflow" {
			t.Fatalf("dead letters %v, want the early signal, once", dead)
		}
	})
}

func TestLostTailBeginsAnIncarnation(t *testing.T) { // P-9
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var signals atomic.Int64
		f.decider("order", func(d *decisionTask) string {
			for _, e := range d.Events {
				if e.Type == "Signal" {
					signals.Add(1)
				}
			}
			return "[]"
		})
		a := f.node("a", nil)
		f.start(startO)
		for range 5 {
			f.publish("drover.default.signal.o.s", "")
		}
		for signals.Load() < 5 {
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		a.stop()
		f.truncate(ns.StreamSignals(), 2)
		// The machine loses what was not synced: the signals stream comes back without its last three messages, and hands
		// out their numbers again.
		f.publish("drover.default.signal.o.after", "1")
		f.publish("drover.default.signal.o.after", "2")
		f.node("b", nil)
		for range 300 {
			if signals.Load() >= 7 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		if signals.Load() != 7 {
			t.Fatalf("%d signals are in the history, want 5 from before the loss and 2 from after it", signals.Load())
		}
	})
}

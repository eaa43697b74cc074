package audit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/ops/audit"
	"github.com/droverhq/drover/schemas"
)

const (
	teaTimer  = `[{"type":"ScheduleTimer","attributes":{"timerId":"tea","startToFireTimeout":120}}]`
	kidStarts = `[{"type":"StartChild","attributes":{"workflowId":"kid","workflowType":"kid"}}]`
)

func reportOnly(o *audit.Options) { o.ReportOnly = true }

// What is lost is found and repeated: the run goes on as if nothing had been.
func TestRepairs(t *testing.T) { // I18
	for _, tc := range []struct {
		name string
		lose func(*house)
		want string
		end  func(*house) // what completes it
	}{
		{"a task", func(h *house) {
			h.decider("order", upTo("ActivitySuccess", "["+activityOf("a", "")+"]"))
			h.start("o", "order")
			h.delete(ns.StreamTasks("main"), h.take().seq)
		}, "task-missing+", (*house).work},
		{"an alarm", func(h *house) {
			h.decider("order", upTo("TimerExpired", teaTimer))
			h.start("o", "order")
			h.await("o", "TimerScheduled")
			h.delete(ns.StreamAlarms(0), h.alarm("o").Seq)
		}, "alarm-missing+", func(h *house) { h.timers("t") }},
		{"an alarm by a later one", func(h *house) {
			h.decider("order", upTo("TimerExpired", teaTimer))
			h.start("o", "order")
			h.await("o", "TimerScheduled")
			m := h.alarm("o")
			h.publish(m.Subject, fmt.Sprintf(`{"run":"o-run","due":%q}`, schemas.At(time.Now().Add(48*time.Hour))))
		}, "alarm-missing+", func(h *house) { h.timers("t") }},
		{"the end of a child", func(h *house) {
			h.decider("order", upTo("ChildSuccess", kidStarts))
			h.decider("kid", upTo("Signal", "[]"))
			h.start("o", "order")
			h.await("o", "ChildStarted")
			time.Sleep(5 * time.Second)
		}, "child-end-lost+", func(*house) {}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			partitions := 1
			if tc.want == "child-end-lost+" {
				partitions = 4
			}
			virtually(t, partitions, func(t *testing.T, h *house) {
				h.master()
				stopTimers := h.timers("t1")
				stopBroker := h.broker("b")
				tc.lose(h)
				if tc.want == "child-end-lost+" {
					stopBroker()
					h.loseChildEnd()
				}
				if tc.want == "alarm-missing+" {
					stopTimers() // it has read the alarm that is gone
				}
				time.Sleep(3 * time.Second)
				look := h.auditor(reportOnly)
				want := tc.want[:len(tc.want)-1]
				others := []string{}
				if tc.want == "alarm-missing+" {
					others = append(others, "alarms-unowned")
				}
				r := h.pass(look)
				h.wantKinds(r, append(others, want)...) // and nothing is done
				if r.OK() {
					t.Fatal("a report that repaired nothing says that all is well")
				}
				a := h.auditor()
				h.wantKinds(h.pass(a), append(others, tc.want)...)
				time.Sleep(3 * time.Second)
				if len(others) == 0 && tc.want != "child-end-lost+" {
					h.wantKinds(h.pass(a))
				}
				tc.end(h)
				h.completes("o")
				time.Sleep(5 * time.Second)
				h.wantKinds(h.pass(a))
			})
		})
	}
}

// loseChildEnd lets the child of o end while nobody owns the partition of o, and takes its word out of the inbox.
func (h *house) loseChildEnd() {
	h.t.Helper()
	p, c := subject.Partition("o", h.partitions), subject.Partition("kid", h.partitions)
	if p == c {
		h.t.Fatalf("o and kid share partition %d; want ids of two", p)
	}
	conn := h.dial()
	lease, err := h.claims(conn, "thief").TryAcquire(h.t.Context(), fmt.Sprintf("partition.%d", p))
	if err != nil {
		h.t.Fatal(err)
	}
	h.stops = append(h.stops, conn.Close, func() { _ = lease.Release(context.Background()) })
	h.broker("b2", func(*broker.Options) {})
	h.signal("kid", "go")
	h.completes("kid")
	time.Sleep(5 * time.Second)
	if err := h.conn.PurgeSubject(h.t.Context(), ns.StreamIn(p), ns.In(p, "o", "child")); err != nil {
		h.t.Fatal(err)
	}
	if err := lease.Release(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	for _, verb := range []string{"pause", "resume"} { // what comes after the gap ends the new owner's recovery
		h.api(verb, `{"workflowId":"o"}`)
	}
	time.Sleep(time.Second)
}

// A run that its owner has forgotten, and whose decider has come since, waits for its alarm; the audit does not.
func TestAsksForgottenDecisions(t *testing.T) {
	virtually(t, 1, func(t *testing.T, h *house) {
		h.master()
		h.timers("t")
		wire := cutwire.New(h.server.Conn())
		stop := h.brokerOn(wire, "b")
		h.start("o", "order")
		time.Sleep(10 * time.Minute) // every position is long past it, and its alarm is a minute away at most
		wire.Kill()
		stop()
		h.broker("b2")
		time.Sleep(time.Second)
		h.decider("order", func(func(string) bool) string { return complete })
		a := h.auditor()
		began := time.Now()
		h.wantKinds(h.pass(a), "decision-not-asked+")
		h.completes("o")
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("it took %v", took)
		}
		time.Sleep(5 * time.Second)
		h.wantKinds(h.pass(a))
	})
}

// Tasks and alarms that nobody waits for are removed, and nothing else is.
func TestRemovesWhatNobodyWaitsFor(t *testing.T) { // I15
	virtually(t, 2, func(t *testing.T, h *house) {
		h.master()
		h.timers("t")
		stop := h.broker("b")
		h.decider("order", upTo("ActivitySuccess", "["+activityOf("a", "")+"]"))
		h.start("o", "order")
		gone := h.take()
		h.api("terminate", `{"workflowId":"o"}`)
		h.start("p", "order")
		h.await("p", "ActivityScheduled")
		h.publish(ns.Task("main", 0), `{"workflowId":"nobody","run":"r","token":"r.5.1","activityId":"x"}`)
		old := fmt.Sprintf(`{"workflowId":"p","run":"p-run","token":%q,"activityId":"a"}`, "p-run.5.0")
		h.publish(ns.Task("main", 0), old)
		far := func(run string) string {
			return fmt.Sprintf(`{"run":%q,"due":%q}`, run, schemas.At(time.Now().Add(time.Hour)))
		}
		p := subject.Partition("nobody", 2)
		h.publish(ns.Alarm(p, "nobody", "r"), far("r"))
		h.publish(ns.Alarm(subject.Partition("p", 2), "p", "earlier"), far("earlier"))
		h.wantKinds(h.pass(h.auditor(reportOnly)), "task-stale", "alarm-stale")
		r := h.pass(h.auditor())
		h.wantKinds(r, "task-stale+", "alarm-stale+")
		if len(r.Findings) != 5 || !r.OK() {
			t.Fatalf("%d findings, want 3 tasks and 2 alarms: %+v", len(r.Findings), r.Findings)
		}
		if k := h.take(); k.WorkflowID != "p" || k.seq == gone.seq {
			t.Fatalf("the list begins with a task of %s, want that of p alone", k.WorkflowID)
		}
		h.work()
		h.completes("p")
		continued := false
		h.decider("chain", func(func(string) bool) string {
			if continued {
				return complete
			}
			continued = true
			return `[{"type":"ContinueAsNew","attributes":{}}]`
		})
		h.start("c", "chain")
		h.completes("c")
		time.Sleep(5 * time.Second)
		h.wantKinds(h.pass(h.auditor()))
		stop()
		h.broker("b2") // which has none of them in memory
		h.publish(ns.Task("main", 0), `{"workflowId":"c","run":"c-run","token":"c-run.5.1","activityId":"x"}`)
		h.publish(ns.Alarm(subject.Partition("c", 2), "c", "c-run"), far("c-run"))
		h.wantKinds(h.pass(h.auditor()), "task-stale+", "alarm-stale+")
	})
}

// What is there at the first look only is haste: it is neither told of nor repaired, and what a run waits for by the second is not removed.
func TestWhatTheSecondLookDoesNotSeeIsLetBe(t *testing.T) { // I15, I18
	var early uint64
	for name, tc := range map[string]struct {
		before, between, after func(*house)
	}{
		"an alarm that comes": {
			func(h *house) { h.delete(ns.StreamAlarms(0), h.alarm("o").Seq) },
			func(h *house) {
				h.publish(ns.Alarm(0, "o", "o-run"), fmt.Sprintf(`{"run":"o-run","due":%q}`, schemas.At(time.Now().Add(time.Minute))))
			},
			func(h *house) { h.alarm("o") },
		},
		"a run that begins": {
			func(h *house) {
				h.decider("tasked", upTo("ActivitySuccess", "["+activityOf("a", "")+"]"))
				h.start("first", "tasked")
				h.take()
				early = h.publish(ns.Task("main", 0), `{"workflowId":"n","run":"n-run","token":"n-run.5.1","activityId":"a"}`)
			},
			func(h *house) { h.start("n", "tasked") },
			func(h *house) {
				if _, err := h.conn.GetSeq(h.t.Context(), ns.StreamTasks("main"), early); err != nil {
					h.t.Errorf("the task of the run that has begun: %v", err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, h *house) {
				h.all()
				h.decider("order", upTo("TimerExpired", teaTimer))
				h.start("o", "order")
				h.await("o", "TimerScheduled")
				h.alarm("o")
				tc.before(h)
				confirm := func(o *audit.Options) { o.Confirm = 10 * time.Second }
				time.AfterFunc(5*time.Second, func() { tc.between(h) })
				h.wantKinds(h.pass(h.auditor(confirm)))
				tc.after(h)
			})
		})
	}
}

// A task that is left of an earlier run of an id goes; the one that the open run of the id waits for stays, even if it is
// the last that the audit sees.
func TestRemovesOnlyTheEarlierRunsTask(t *testing.T) {
	virtually(t, 1, func(t *testing.T, h *house) {
		h.all()
		h.decider("order", upTo("ActivitySuccess", "["+activityOf("a", "")+"]"))
		for _, run := range []string{"r1", "r2", "r3"} {
			h.api("start", fmt.Sprintf(`{"workflowId":"o","type":"order","run":%q}`, run))
			h.await("o", "ActivityScheduled")
			time.Sleep(time.Second)
			if run != "r3" {
				h.api("terminate", `{"workflowId":"o"}`)
			}
		}
		r := h.pass(h.auditor())
		h.wantKinds(r, "task-stale+")
		if len(r.Findings) != 2 || r.Tasks != 3 {
			t.Fatalf("%d findings of %d tasks, want 2 of 3: %+v", len(r.Findings), r.Tasks, r.Findings)
		}
		if k := h.take(); k.Run != "r3" {
			t.Fatalf("the list begins with a task of %s, want that of r3", k.Run)
		}
		h.work()
		h.completes("o")
	})
}

// Many runs at once, far more than the owner keeps in memory, whose alarms are all gone.
func TestRepairsManyRuns(t *testing.T) {
	virtually(t, 2, func(t *testing.T, h *house) {
		const n = 150
		h.master()
		stopTimers := h.timers("t1")
		h.broker("b", func(o *broker.Options) { o.CachedRuns = 20 })
		h.decider("order", upTo("TimerExpired", teaTimer))
		for i := range n {
			h.start(fmt.Sprintf("o%d", i), "order")
		}
		time.Sleep(20 * time.Second) // armed, and mostly forgotten
		stopTimers()
		for p := range h.partitions {
			if err := h.conn.PurgeSubject(t.Context(), ns.StreamAlarms(p), ns.AllAlarms(p)); err != nil {
				t.Fatal(err)
			}
		}
		r := h.pass(h.auditor())
		h.wantKinds(r, "alarm-missing+", "alarms-unowned")
		if r.Runs != n || r.More["alarm-missing"] != n-100 {
			t.Fatalf("looked at %d runs, %v more findings, want %d and %d", r.Runs, r.More, n, n-100)
		}
		h.timers("t2")
		time.Sleep(3 * time.Second)
		h.wantKinds(h.pass(h.auditor()))
		for i := range n {
			h.completes(fmt.Sprintf("o%d", i))
		}
	})
}

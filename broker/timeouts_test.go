package broker_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// at returns the times of a workflow's events of a type.
func (f *fleet) at(id string, typ schemas.EventType) []time.Time {
	f.t.Helper()
	var at []time.Time
	for _, e := range f.events(id) {
		if e.Type() == typ {
			at = append(at, e.Time.Time())
		}
	}
	return at
}

// between checks that two events are at least want apart, and hardly more: nothing fires early, and no alarm is forgotten.
func between(t *testing.T, what string, from, to []time.Time, want time.Duration) {
	t.Helper()
	if len(from) == 0 || len(to) == 0 {
		t.Fatalf("%s: %d and %d events, want both", what, len(from), len(to))
	}
	if got := to[0].Sub(from[0]); got < want || got > want+300*time.Millisecond {
		t.Fatalf("%s after %v, want %v", what, got, want)
	}
}

func TestTimeouts(t *testing.T) {
	for _, tt := range []struct {
		name       string // with the requirement it shows
		start      string // more fields of the start
		options    string // more options of the activity
		begins     bool
		from, want schemas.EventType
		after      time.Duration
	}{
		{"S1-13 S1-32 start to close", "", `,"startToCloseTimeout":900`, true, schemas.EventActivityStarted, schemas.EventActivityTimedOut, 15 * time.Minute},
		{"S1-14 S1-32 schedule to start", "", `,"scheduleToStartTimeout":30`, false, schemas.EventActivityScheduled, schemas.EventActivityScheduledTimeout, 30 * time.Second},
		{"S1-32 schedule to close, never begun", "", `,"scheduleToCloseTimeout":0.5`, false, schemas.EventActivityScheduled, schemas.EventActivityTimedOut, 500 * time.Millisecond},
		{"S1-32 schedule to close, running", "", `,"scheduleToCloseTimeout":90`, true, schemas.EventActivityScheduled, schemas.EventActivityTimedOut, 90 * time.Second},
		{"S1-12 S1-32 heartbeat lost", "", `,"heartbeatTimeout":20`, true, schemas.EventActivityStarted, schemas.EventActivityTimedOut, 20 * time.Second},
		{"S1-48 the run's default", `,"activityDefaults":{"startToCloseTimeout":45}`, "", true, schemas.EventActivityStarted, schemas.EventActivityTimedOut, 45 * time.Second},
		{"S1-48 a decision overrides it", `,"activityDefaults":{"startToCloseTimeout":45}`, `,"startToCloseTimeout":5`, true, schemas.EventActivityStarted, schemas.EventActivityTimedOut, 5 * time.Second},
		{"S1-32 ten minutes if nobody says", "", "", true, schemas.EventActivityStarted, schemas.EventActivityTimedOut, 10 * time.Minute},
		{"S1-4 S1-31 the workflow's", `,"executionStartToCloseTimeout":900`, "", false, schemas.EventWorkflowStarted, schemas.EventWorkflowTimedOut, 15 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil, func(o *broker.Options) { o.CheckpointEvery = time.Minute })
				closed := make(chan struct{})
				f.decider("order", func(d *decisionTask) string {
					if d.has(string(tt.want)) {
						close(closed)
						return complete
					}
					return one(tt.options)(d)
				})
				f.start(`{"workflowId":"o","type":"order"` + tt.start + `}`)
				if tt.begins {
					k := f.pull()
					k.report("started", "")
					if err := k.msg.TermWithReason("the test plays a worker that hangs"); err != nil {
						t.Fatal(err)
					}
				}
				if tt.want == schemas.EventWorkflowTimedOut {
					time.Sleep(tt.after + time.Second)
				} else {
					<-closed
				}
				f.result("o")
				between(t, string(tt.want), f.at("o", tt.from), f.at("o", tt.want), tt.after)
			})
		})
	}
}

func TestHeartbeatKeepsAlive(t *testing.T) { // S1-12
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(`,"heartbeatTimeout":10`))
		f.start(startO)
		k := f.pull()
		k.report("started", "")
		beat := func() map[string]any {
			var a map[string]any
			raw := f.request(ns.Beat(0, "o", "main"), `{"token":"`+k.Token+`","details":{"done":7}}`)
			if err := json.Unmarshal(raw, &a); err != nil {
				t.Fatal(err)
			}
			return a
		}
		for range 10 {
			time.Sleep(8 * time.Second)
			if a := beat(); a["gone"] == true {
				t.Fatalf("a heartbeat in time: %v", a)
			}
		}
		before := len(f.types("o"))
		last := time.Now()
		f.await("o", schemas.EventActivityTimedOut)
		if before != 6 {
			t.Fatalf("%d events while it was alive, want 6: a heartbeat writes none", before)
		}
		if late := f.at("o", schemas.EventActivityTimedOut)[0].Sub(last); late < 9*time.Second || late > 11*time.Second {
			t.Fatalf("timed out %v after the last heartbeat, want 10s", late)
		}
		if a := beat(); a["gone"] != true {
			t.Fatalf("a heartbeat after the timeout: %v", a)
		}
		f.result("o")
	})
}

func TestHeartbeatsOfAnEarlierOwner(t *testing.T) { // S1-12: a new owner has not heard them, and must not judge by that
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.decider("order", one(`,"heartbeatTimeout":40`))
		f.start(startO)
		k := f.pull()
		k.report("started", "")
		beat := func() {
			for range 100 { // until there is an owner
				ctxRaw := f.tryRequest(ns.Beat(0, "o", "main"), `{"token":"`+k.Token+`"}`)
				if ctxRaw != nil {
					return
				}
				time.Sleep(200 * time.Millisecond)
			}
			t.Fatal("no heartbeat was answered")
		}
		for range 5 {
			time.Sleep(30 * time.Second)
			beat()
		}
		a.kill()
		f.node("b", nil)
		for range 5 {
			beat()
			time.Sleep(30 * time.Second)
		}
		if got := f.at("o", schemas.EventActivityTimedOut); len(got) != 0 {
			t.Fatal("a living activity timed out after a change of owner")
		}
		k.success()
		f.result("o")
	})
}

func TestDeciderTimeouts(t *testing.T) { // S1-46, S1-8, S1-33, S1-39
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		late := make(chan string, 1)
		asked := make(chan string, 10)
		f.decider("order", func(d *decisionTask) string {
			if d.Attempt == 1 {
				late <- d.Token
				return "" // hangs
			}
			asked <- d.Token
			return complete
		})
		f.start(`{"workflowId":"o","type":"order","taskStartToCloseTimeout":5}`)
		f.result("o")
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderTimedOut", "DeciderScheduled", "DeciderStarted",
			"DeciderCompleted", "WorkflowSuccess")
		if token := <-asked; token == <-late {
			t.Fatal("the second task has the token of the first")
		}
		between(t, "DeciderTimedOut", f.at("o", schemas.EventDeciderStarted), f.at("o", schemas.EventDeciderTimedOut), 5*time.Second)
	})
}

func TestNobodyListens(t *testing.T) { // S1-8: without a decider nothing is written; why tells
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.start(startO)
		time.Sleep(10 * time.Minute)
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled")
		if because, _ := f.api("why", `{"workflowId":"o"}`)["because"].(string); !strings.Contains(because, `no decider for type "order" is listening`) {
			t.Fatalf("why: %s", because)
		}
		began := time.Now()
		f.decider("order", func(*decisionTask) string { return complete }) // does not announce itself
		f.result("o")
		if took := time.Since(began); took > 2*time.Second {
			t.Fatalf("asked %v after a decider began to listen", took)
		}
	})
}

func TestWaitingRunsSurviveTheirOwner(t *testing.T) { // P-1: an ask that nobody answers is covered by an alarm
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.start(startO)
		time.Sleep(10 * time.Minute) // every position is long past it
		a.kill()
		f.node("b", nil)
		time.Sleep(3 * time.Minute)
		f.decider("order", func(*decisionTask) string { return complete })
		f.result("o")
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
	})
}

func TestScheduleToStartOfADecision(t *testing.T) { // S1-8
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.start(`{"workflowId":"o","type":"order","taskScheduleToStartTimeout":60}`)
		f.await("o", schemas.EventDeciderTimedOut)
		between(t, "DeciderTimedOut", f.at("o", schemas.EventDeciderScheduled), f.at("o", schemas.EventDeciderTimedOut), time.Minute)
		f.decider("order", func(*decisionTask) string { return complete })
		f.result("o")
	})
}

func TestTimerSurvivesItsOwner(t *testing.T) { // S1-16, S1-18, P-8 by P-1
	virtually(t, 1, func(t *testing.T, f *fleet) {
		slow := func(o *broker.Options) { o.CheckpointEvery = time.Minute } // what is idle costs less
		a := f.node("a", nil, slow)
		f.decider("order", tenMinutes)
		f.start(startO)
		f.await("o", schemas.EventTimerScheduled)
		time.Sleep(3 * time.Minute)
		a.kill()
		f.node("b", nil, slow)
		f.result("o")
		between(t, "TimerExpired", f.at("o", schemas.EventTimerScheduled), f.at("o", schemas.EventTimerExpired), 10*time.Minute)
	})
}

func TestPassiveAfterManyFailures(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		var mended atomic.Bool
		var tries atomic.Int64
		f.decider("order", func(*decisionTask) string {
			if mended.Load() {
				return complete
			}
			tries.Add(1)
			return `[{"type":"Nonsense"}]`
		})
		f.start(startO)
		f.await("o", schemas.EventWorkflowPaused)
		because, _ := f.api("why", `{"workflowId":"o"}`)["because"].(string)
		for _, want := range []string{"parked", "10 times", `"Nonsense" is no decision`, "drover resume o"} {
			if !strings.Contains(because, want) {
				t.Fatalf("why: %s, want it to say %q", because, want)
			}
		}
		time.Sleep(10 * time.Minute)
		if tries.Load() != 10 {
			t.Fatalf("%d tries, want 10 and then none", tries.Load())
		}
		mended.Store(true)
		if a := f.api("resume", `{"workflowId":"o"}`); a["error"] != nil {
			t.Fatal(a)
		}
		f.result("o")
	})
}

func TestAlarmsAreFenced(t *testing.T) { // P-10
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var alarms seen
		f.node("a", func(subj string, body []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "drover.default.alarm.") {
				alarms.add(string(body))
			}
			return cutwire.Pass
		})
		f.decider("order", tenMinutes)
		f.start(startO)
		f.await("o", schemas.EventTimerScheduled)
		time.Sleep(5 * time.Second)
		all := alarms.take()
		if len(all) == 0 {
			t.Fatal("no alarm was armed")
		}
		for _, a := range all {
			if !strings.Contains(a, "Nats-Expected-Last-Subject-Sequence:") {
				t.Fatal("an alarm was published without the sequence of its subject")
			}
		}
		// A late write of an earlier owner is refused.
		armed, err := f.post.LastBySubject(t.Context(), ns.StreamAlarms(0), "drover.default.alarm.0.o.r1")
		if err != nil {
			t.Fatal(err)
		}
		h := natsconn.Header{}
		natsconn.ExpectLastSubjectSeq(h, armed.Seq-1)
		if _, err := f.post.PublishSync(t.Context(), "drover.default.alarm.0.o.r1", h, []byte(`{"run":"r1","due":"2099-01-01T00:00:00Z"}`)); err == nil {
			t.Fatal("a stale alarm was stored over a newer one")
		}
		// Someone rings early: nothing expires, and the alarm is armed again.
		f.publish("drover.default.in.0.o.alarm", `{"run":"r1","due":"2000-01-01T00:00:00Z"}`)
		f.result("o")
		between(t, "TimerExpired", f.at("o", schemas.EventTimerScheduled), f.at("o", schemas.EventTimerExpired), 10*time.Minute)
		time.Sleep(time.Minute)
		if _, err := f.post.LastBySubject(t.Context(), ns.StreamAlarms(0), "drover.default.alarm.0.>"); err == nil {
			t.Fatal("the alarm of a closed run is still armed")
		}
	})
}

func TestFireCountsByItsServerTime(t *testing.T) { // P-15
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(d *decisionTask) string {
			if d.has("TimerExpired") {
				return complete
			}
			return `[{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":60}}]`
		})
		f.start(startO)
		f.await("o", schemas.EventTimerScheduled)
		// Rings that claim to be due, one every second: only the one that the server stamps at or past due counts.
		for range 70 {
			f.publish("drover.default.in.0.o.alarm", `{"run":"r1","due":"2000-01-01T00:00:00Z"}`)
			time.Sleep(time.Second)
		}
		f.result("o")
		between(t, "TimerExpired", f.at("o", schemas.EventTimerScheduled), f.at("o", schemas.EventTimerExpired), time.Minute)
		f.notBeforeItsRecord(time.Minute)
	})
}

// A broker knows the server's clock from answers that came late. What it then hears in time must not make a timer early that was set
// before.
func TestTimerOfABrokerThatHearsLate(t *testing.T) { // P-15
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		a.wire.Lag(30 * time.Millisecond)
		f.decider("order", func(d *decisionTask) string {
			if d.has("TimerExpired") {
				return complete
			}
			return `[{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":5}}]`
		})
		f.api("list", "{}")
		a.wire.Lag(0)
		f.start(startO)
		f.await("o", schemas.EventTimerScheduled)
		f.publish("drover.default.in.0.o.alarm", `{"run":"r1","due":"2000-01-01T00:00:00Z"}`) // it bears the server's time
		f.result("o")
		f.notBeforeItsRecord(5 * time.Second)
	})
}

// The leader of an inbox is a server whose clock is five minutes ahead of that of the leader of the history. What it stamps is not due for it, and
// what counts from it is not late (P-15).
func TestTimersBesideAnInboxWhoseClockIsAhead(t *testing.T) {
	for name, alarmsEarly := range map[string]bool{"a ring that comes early": true, "a start": false} {
		t.Run("P-15/"+name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				a := f.node("a", nil)
				a.wire.Hear(func(b []byte) { // the addresses for acknowledgements bear the time: it begins as 946684800 s, and has less than 100 s
					for at := 0; ; at++ {
						i := bytes.Index(b[at:], []byte("$JS.ACK.drover-default-in-0."))
						if i < 0 {
							return
						}
						at += i
						if j := bytes.Index(b[at:], []byte(".9466848")); j >= 0 && j < bytes.IndexByte(b[at:], ' ') {
							copy(b[at+j:], ".9466851")
						}
					}
				})
				f.decider("order", func(d *decisionTask) string {
					if d.has("TimerExpired") {
						return complete
					}
					return `[{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":5}}]`
				})
				f.publish("drover.default.in.0.o.start", startO)
				f.await("o", schemas.EventTimerScheduled)
				if alarmsEarly {
					f.publish("drover.default.in.0.o.alarm", `{"run":"r1","due":"2000-01-01T00:00:00Z"}`)
				}
				f.result("o")
				f.notBeforeItsRecord(5 * time.Second)
				if took := f.at("o", schemas.EventTimerExpired)[0].Sub(f.at("o", schemas.EventWorkflowStarted)[0]); took > 10*time.Second {
					t.Errorf("the timer expired %v after the start, want 5 s", took)
				}
			})
		})
	}
}

// notBeforeItsRecord wants the one timer to have expired so long after the record that set it, by the server's stamps.
func (f *fleet) notBeforeItsRecord(limit time.Duration) {
	f.t.Helper()
	var set, fired time.Time
	err := f.post.Scan(f.t.Context(), ns.StreamHistory(0), natsconn.ReadOptions{FilterSubjects: []string{ns.AllRuns(0)}}, func(s natsconn.Stored) error {
		var r schemas.Record
		if err := schemas.Unmarshal(s.Data, &r); err != nil {
			return err
		}
		for _, e := range r.Events {
			switch e.Type() {
			case schemas.EventTimerScheduled:
				set = s.Time
			case schemas.EventTimerExpired:
				fired = s.Time
			}
		}
		return nil
	})
	if err != nil || set.IsZero() || fired.Sub(set) < limit {
		f.t.Fatalf("the timer expired %v after the record that set it (%v), want %v", fired.Sub(set), err, limit)
	}
}

func TestExpiredClaimWritesNothing(t *testing.T) { // S3-9, S3-13, P-16
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", func(*decisionTask) string { return complete })
		var overdue atomic.Bool
		var late seen
		a := f.node("a", nil)
		f.api("list", "{}")
		a.wire.Judge(func(subj string, _ []byte) cutwire.Verdict {
			switch {
			case strings.HasPrefix(subj, "$KV.drover-default-claims.") && overdue.Load():
				return cutwire.Swallow
			case strings.HasPrefix(subj, "drover.default.history."):
				late.add(subj)
			}
			return cutwire.Pass
		})
		overdue.Store(true) // the node is slow: it renews nothing, but works on
		time.Sleep(5 * time.Second)
		f.start(`{"workflowId":"in-time","type":"order"}`)
		if got := f.result0("in-time"); got == "" || len(late.take()) == 0 {
			t.Fatal("an unexpired claim must keep working")
		}
		time.Sleep(10 * time.Second)
		late.take()
		body, err := schemas.Marshal(&schemas.StartRequest{V: 1, WorkflowID: "too-late", Run: "r9", Type: "order"})
		if err != nil {
			t.Fatal(err)
		}
		f.publish("drover.default.in.0.too-late.start", string(body))
		time.Sleep(5 * time.Second)
		if all := late.take(); len(all) != 0 {
			t.Fatalf("written under an expired claim: %v", all)
		}
		f.node("b", nil)
		f.result("too-late")
	})
}

// The clock must not be taken from a backlog: its messages are as old as they waited.
func TestOldBacklogSetsNoClockBack(t *testing.T) { // P-15
	virtually(t, 1, func(t *testing.T, f *fleet) {
		body, err := schemas.Marshal(&schemas.StartRequest{V: 1, WorkflowID: "o", Run: "r1", Type: "order"})
		if err != nil {
			t.Fatal(err)
		}
		f.publish("drover.default.in.0.o.start", string(body))
		time.Sleep(20 * time.Minute)
		f.decider("order", func(d *decisionTask) string {
			if d.has("TimerExpired") {
				return complete
			}
			return `[{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":60}}]`
		})
		f.node("a", nil)
		f.result("o")
		between(t, "TimerExpired", f.at("o", schemas.EventTimerScheduled), f.at("o", schemas.EventTimerExpired), time.Minute)
	})
}

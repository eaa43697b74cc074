package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

const (
	atOnce     = 500 / fewer // activities that a decider asks for in one decision
	activities = 60          // and in several, since no message holds that
	aStep      = 15          // that many fit one reply, but no record
)

// inputs is the input of an activity of 64 KiB.
var inputs = strings.Repeat("drover! ", 8<<10)

func scheduleMany(first, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = `{"type":"ScheduleActivity","attributes":{"activityId":"a` + fmt.Sprint(first+i) + `","activityType":"work","list":"main","input":"` + inputs + `"}}`
	}
	return strings.Join(all, ",")
}

// A decision of many activities with 64 KiB of input each fits no message of this server. A decider in
// another language hears of it from its own client, and decides in steps. What fits a message and no
// record passes: the owner stores some of the inputs elsewhere (R7).
func TestTooLargeDecisionOfAStranger(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		const next = `{"type":"ScheduleTimer","attributes":{"timerId":"next","startToFireTimeout":0}}`
		attempts, scheduled := 0, 0
		sub, err := f.nc.Subscribe(ns.Decide("order"), func(m *nats.Msg) {
			var task decisionTask
			if err := json.Unmarshal(m.Data, &task); err != nil {
				t.Errorf("decision task: %v", err)
				return
			}
			answer := func(decisions string) error {
				return m.Respond([]byte(`{"token":"` + task.Token + `","decisions":[` + decisions + `]}`))
			}
			attempts++
			var err error
			switch {
			case attempts == 1:
				if err := answer(scheduleMany(0, atOnce)); !errors.Is(err, nats.ErrMaxPayload) {
					t.Errorf("the client says %v, want that it is too large", err)
				}
			case scheduled < activities:
				err = answer(scheduleMany(scheduled, aStep) + "," + next)
				scheduled += aStep
			default:
				err = answer(complete[1 : len(complete)-1])
			}
			if err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		f.flush()
		f.start(startO)
		f.completes("o")
		if err := sub.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		f.wantScheduled("o")
	})
}

// wantScheduled wants all activities in the history, each once and with its input, and no refusal.
func (f *fleet) wantScheduled(id string) {
	f.t.Helper()
	refused, seen := 0, map[string]int{}
	for _, e := range f.recorded(id) {
		switch a := e.Attributes.(type) {
		case *schemas.DeciderFailed:
			refused++
			f.t.Errorf("the decider failed with %s: %s", a.Cause, a.Reason)
		case *schemas.ActivityScheduled:
			seen[a.ActivityID]++
			size := int64(len(a.Input))
			if ref, ok := a.Input.Ref(); ok {
				size = ref.Size
			}
			if size != int64(len(inputs)+2) {
				f.t.Fatalf("activity %s has %d bytes of input", a.ActivityID, size)
			}
		}
	}
	if refused != 0 || len(seen) != activities {
		f.t.Fatalf("%d refusals and %d activities, want none and %d", refused, len(seen), activities)
	}
}

// A worker in Go stores the largest inputs elsewhere, until its answer fits (R7).
func TestTooLargeDecisionOfAGoDecider(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		w := newWorld(t, func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			v, err := task.View(ctx)
			if err != nil {
				return nil, err
			}
			var all []schemas.Decision
			for i := range activities {
				switch id := fmt.Sprint("a", i); {
				case task.PreviousStartedID() == 0:
					all = append(all, decider.Schedule(id, "charge", inputs, decider.List("PCI")))
				case !v.Done(id):
					return nil, nil
				}
			}
			if task.PreviousStartedID() > 0 {
				all = append(all, decider.Complete("done"))
			}
			return all, nil
		}, func(context.Context, []byte) ([]byte, error) { return []byte("1"), nil })
		defer w.stop()
		run, err := w.client.Start(t.Context(), "order", "", &drover.StartOptions{ID: "o"})
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Result(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		w.wantScheduled("o")
		w.check()
	})
}

// Whatever fits the record of a decision gets to where it is sent, also if it fits no message together with what must go
// with it.
func TestLargeInputsInADecision(t *testing.T) {
	input := string(large(800 << 10))
	for name, tc := range map[string]struct {
		decision string
		wait     string // for this event
	}{
		"activity":     {`{"type":"ScheduleActivity","attributes":{"activityId":"a","activityType":"work","list":"main","input":` + input + `}}`, "ActivitySuccess"},
		"child":        {`{"type":"StartChild","attributes":{"workflowId":"kid","workflowType":"kid","input":` + input + `}}`, "ChildSuccess"},
		"signal":       {`{"type":"SignalExternal","attributes":{"workflowId":"kid","signalName":"go","input":` + input + `}}`, ""},
		"continuation": {`{"type":"ContinueAsNew","attributes":{"input":` + input + `}}`, ""},
		"marker":       {`{"type":"RecordMarker","attributes":{"markerName":"m","details":` + input + `}}`, ""},
		"result":       {`{"type":"CompleteWorkflow","attributes":{"result":` + input + `}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", func(d *decisionTask) string {
					has := d.has
					if d.Events[len(d.Events)-1].ID < d.StartedID { // the window goes on after what fits a message
						all := f.types("o")
						has = func(typ string) bool { return slices.Contains(all, typ) }
					}
					switch {
					case has("DeciderFailed"), tc.wait != "" && has(tc.wait), has("TimerExpired"):
						return complete
					case d.has("WorkflowStarted") && d.Events[0].Attributes["continuedExecutionRun"] != nil:
						return complete
					case !d.has("WorkflowStarted"):
						return "[]"
					case name == "continuation", name == "result":
						return "[" + tc.decision + "]"
					}
					if tc.wait != "" {
						return "[" + tc.decision + "]"
					}
					return "[" + tc.decision + `,{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":60}}]`
				})
				f.decider("kid", func(d *decisionTask) string {
					if name == "signal" && !d.has("Signal") {
						return "[]"
					}
					return complete
				})
				if name == "signal" {
					f.start(`{"workflowId":"kid","type":"kid","run":"k1"}`)
				}
				f.start(startO)
				if name == "activity" {
					f.pull().success()
				}
				for f.result("o") != "completed" {
					time.Sleep(time.Second)
				}
				if name == "signal" || name == "child" {
					f.completes("kid")
				}
				if dead := f.dead(); len(dead) != 0 {
					t.Fatalf("dead letters %v", dead)
				}
				if n := f.count("o", schemas.EventDeciderFailed); n != 0 {
					t.Fatalf("%d decisions failed", n)
				}
			})
		})
	}
}

// A worker that beats for a workflow which is closed is told to stop, at once and for ever.
func TestHeartbeatAfterTheClose(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		first := f.node("a", nil)
		f.decider("order", one(`,"heartbeatTimeout":10`))
		f.start(startO)
		k := f.pull()
		k.report("started", "")
		f.await("o", schemas.EventActivityStarted)
		var task schemas.ActivityTask
		if err := schemas.Unmarshal(k.msg.Data(), &task); err != nil {
			t.Fatal(err)
		}
		gone := func() bool {
			t.Helper()
			var a schemas.BeatAnswer
			for range 100 {
				if raw := f.tryRequest(task.Beat, `{"token":"`+k.Token+`"}`); raw != nil {
					if err := schemas.Unmarshal(raw, &a); err != nil {
						t.Fatal(err)
					}
					return a.Gone
				}
				time.Sleep(100 * time.Millisecond) // nobody owns the partition
			}
			t.Fatal("a heartbeat is never answered")
			return false
		}
		if gone() {
			t.Fatal("gone before the close")
		}
		f.api("terminate", `{"workflowId":"o"}`)
		f.await("o", schemas.EventWorkflowTerminated)
		before := f.types("o")
		if !gone() {
			t.Fatal("not gone after the close")
		}
		f.start(`{"workflowId":"o","type":"order","run":"r2"}`)
		if !gone() {
			t.Fatal("not gone in the next run")
		}
		first.stop()
		f.node("b", nil)
		if !gone() {
			t.Fatal("not gone at the next owner")
		}
		if got := f.eventsOf("o", "r1"); len(got) != len(before) {
			t.Fatalf("%d events, want %d", len(got), len(before))
		}
	})
}

// A child that asks for its parent as a child hears that it is running already; both go on.
func TestCycleOfParents(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(d *decisionTask) string {
			if d.has("WorkflowStarted") {
				return `[{"type":"StartChild","attributes":{"workflowId":"b","workflowType":"back"}}]`
			}
			return parent(d)
		})
		f.decider("back", func(d *decisionTask) string {
			if d.has("WorkflowStarted") {
				return `[{"type":"StartChild","attributes":{"workflowId":"a","workflowType":"order"}}]`
			}
			return parent(d)
		})
		f.start(`{"workflowId":"a","type":"order"}`)
		f.completes("a")
		if n := f.count("b", schemas.EventChildStartFailed); n != 1 || len(f.runsOf("a")) != 1 || len(f.runsOf("b")) != 1 {
			t.Fatalf("%d refusals, runs %v and %v; want one of each", n, f.runsOf("a"), f.runsOf("b"))
		}
	})
}

// Children that have children without end are stopped at a depth.
func TestEndlessRecursion(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(d *decisionTask) string {
			if d.has("WorkflowStarted") {
				id, _ := d.Events[0].Attributes["workflowId"].(string)
				return `[{"type":"StartChild","attributes":{"workflowId":"` + id + `x","workflowType":"order"}}]`
			}
			return parent(d)
		})
		f.start(`{"workflowId":"x","type":"order"}`)
		f.completes("x")
		deepest := strings.Repeat("x", 51)
		for _, e := range f.events(deepest) {
			if a, ok := e.Attributes.(*schemas.ChildStartFailed); ok && a.Cause != schemas.CauseChildDepth {
				t.Fatalf("cause %s", a.Cause)
			}
		}
		if n := f.count(deepest, schemas.EventChildStartFailed); n != 1 || len(f.runsOf(deepest+"x")) != 0 {
			t.Fatalf("%d refusals at depth 50, want 1, and no run below", n)
		}
	})
}

// The first record of a run that continues another has its input beside the request ids of the signals that its chain has had: where no
// message takes both, the input is stored apart.
func TestContinuationBesideManyRequestIDs(t *testing.T) { // P-4, R7
	for _, kb := range []int{400, 850} {
		t.Run(fmt.Sprint(kb), func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", func(d *decisionTask) string {
					switch {
					case d.has("DeciderFailed"):
						return `[{"type":"ContinueAsNew","attributes":{"input":"small"}}]`
					case signaledBy(d, "go"):
						return `[{"type":"ContinueAsNew","attributes":{"input":"` + strings.Repeat("x", kb<<10) + `"}}]`
					case d.has("WorkflowStarted") && d.Events[0].Attributes["continuedExecutionRun"] != nil:
						return complete
					}
					return "[]"
				})
				f.start(startO)
				for i := range 1000 {
					m := nats.NewMsg("drover.default.signal.o.s")
					m.Header.Set(schemas.RequestIDHeader, fmt.Sprintf("%0250d", i))
					if _, err := f.js.PublishMsg(t.Context(), m); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Second)
				f.publish("drover.default.signal.o.go", "1")
				time.Sleep(time.Minute)
				started, ok := f.events("o")[0].Attributes.(*schemas.WorkflowStarted)
				if !ok || len(started.SignalIDs) != 1000 || string(started.Input) == `"small"` {
					t.Fatalf("the next run begins with %T, want one with all ids and the large input", f.events("o")[0].Attributes)
				}
				if _, apart := started.Input.Ref(); !apart && len(started.Input) < kb<<10 {
					t.Fatalf("the input has %d bytes, want %d KiB or a reference to them", len(started.Input), kb)
				}
				f.completes("o")
			})
		})
	}
}

// What a decider says of its failure stands in the record that parks its run twice: however long it is, the partition goes on.
func TestLongFailureOfADecider(t *testing.T) {
	long := strings.Repeat("x", 600<<10)
	for name, reply := range map[string]string{
		"an error":                   `"error":{"reason":"` + long + `"}`,
		"the details of an error":    `"error":{"reason":"no","details":"` + long + `"}`,
		"a decision nobody knows of": `"decisions":[{"type":"` + long + `"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.repliesWith(func(d *decisionTask) []byte { return []byte(`{"token":"` + d.Token + `",` + reply + `}`) })
				f.start(startO)
				f.await("o", schemas.EventWorkflowPaused)
				for _, e := range f.events("o") {
					if a, ok := e.Attributes.(*schemas.DeciderFailed); ok && (len(a.Reason) > schemas.MaxDeciderReason || len(a.Details) > schemas.MaxDeciderDetails) {
						t.Errorf("the history keeps %d bytes of the reason and %d of the details", len(a.Reason), len(a.Details))
					}
				}
			})
		})
	}
}

// The events of a decision say more than the decision where it is refused, or its activities have the retry policy of their type: what fits no
// record is refused, and the partition goes on.
func TestDecisionsThatSayLittle(t *testing.T) {
	wid := strings.Repeat("w", 250)
	reasons := make([]string, 64)
	for i := range reasons {
		reasons[i] = fmt.Sprintf(`"%0200d"`, i)
	}
	activity := func(i int) string {
		return fmt.Sprintf(`{"type":"ScheduleActivity","attributes":{"activityId":"a%d","activityType":"work","list":"main"}}`, i)
	}
	lock := func(int) string { return `{"type":"SetState","attributes":{"key":"lock-x","value":"nobody"}}` }
	for _, tt := range []struct {
		name     string
		n        int
		decision func(int) string
		fits     bool
	}{
		{"few activities", 60, activity, true},
		{"activities", 100, activity, false},
		{"some refusals", 1000, lock, true},
		{"refusals", 2900, lock, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.api("typeRegister", `{"kind":"activity","name":"work","activity":{"retry":{"maximumAttempts":3,"nonRetryable":[`+strings.Join(reasons, ",")+`]}}}`)
				all := make([]string, tt.n)
				for i := range all {
					all[i] = tt.decision(i)
				}
				f.decider("order", func(d *decisionTask) string {
					if d.has("WorkflowStarted") && !d.has("DeciderFailed") {
						return "[" + strings.Join(all, ",") + "]"
					}
					return complete
				})
				f.start(`{"workflowId":"` + wid + `","type":"order","run":"r1","requestId":"q1"}`)
				f.await(wid, schemas.EventDeciderCompleted)
				f.publish("drover.default.signal."+wid+".go", "1")
				f.completes(wid)
				failed := slices.ContainsFunc(f.events(wid), func(e schemas.Event) bool {
					a, ok := e.Attributes.(*schemas.DeciderFailed)
					return ok && a.Cause == schemas.CauseDecisionTooLarge
				})
				if failed == tt.fits {
					t.Errorf("%d decisions are refused for their size: %v, want %v", tt.n, failed, !tt.fits)
				}
			})
		})
	}
}

// What heartbeats have said stands in the history when their attempts fail, and no record takes that of many, however short the outcomes were.
func TestManyAttemptsFailLaterLargeHeartbeats(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		const n = 4
		retry := `,"retry":{"maximumAttempts":2,"initialInterval":1}`
		f.decider("order", func(d *decisionTask) string {
			if !d.has("WorkflowStarted") {
				return "[]"
			}
			all := make([]string, n)
			for i := range all {
				all[i] = scheduleActivity(fmt.Sprint("a", i), retry)
			}
			return "[" + strings.Join(all, ",") + "]"
		})
		f.start(startO)
		var tasks []*task
		for range n {
			k := f.pull()
			k.report("started", "")
			tasks = append(tasks, k)
		}
		time.Sleep(time.Second)
		for _, k := range tasks {
			f.request(k.Beat, `{"token":"`+k.Token+`","details":"`+strings.Repeat("x", 400<<10)+`"}`)
		}
		a.broker.Busy(0, 50*time.Millisecond)
		for _, k := range tasks {
			k.report("failed", `,"reason":"no"`)
			if err := k.msg.Ack(); err != nil {
				t.Fatal(err)
			}
		}
		for range n {
			k := f.pull()
			if said, _ := k.HeartbeatDetails.(string); k.Attempt != 2 || len(said) != 400<<10 {
				t.Errorf("attempt %d of %s knows %d bytes of what the first one has said", k.Attempt, k.ActivityID, len(said))
			}
			k.success()
		}
	})
}

// signaledBy tells whether a signal is in the window of a task.
func signaledBy(d *decisionTask, name string) bool {
	for _, e := range d.Events {
		if e.Type == "Signal" && e.Attributes["signalName"] == name {
			return true
		}
	}
	return false
}

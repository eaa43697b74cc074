package broker_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/schemas"
)

// beat sends a heartbeat and returns the answer.
func (t *task) beat(details string) schemas.BeatAnswer {
	t.f.t.Helper()
	var a schemas.BeatAnswer
	if err := json.Unmarshal(t.f.request(t.Beat, `{"token":"`+t.Token+`","details":`+details+`}`), &a); err != nil {
		t.f.t.Fatal(err)
	}
	return a
}

// begun reports the start and takes the task off its list.
func (t *task) begun() {
	t.f.t.Helper()
	t.report("started", "")
	if err := t.msg.Ack(); err != nil {
		t.f.t.Fatal(err)
	}
}

// A running activity is told at once that it is to stop, on its worker's control subject; its next heartbeat says the same.
func TestCancelReachesARunningActivity(t *testing.T) { // S1-15
	for _, how := range []string{"the decider asks", "the run is terminated", "its heartbeat is missed"} {
		t.Run(how, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", when(
					"WorkflowStarted", "["+scheduleActivity("a", `,"heartbeatTimeout":10`)+"]",
					"ActivityCanceled", complete,
					"ActivityTimedOut", "[]",
					"Signal", `[{"type":"RequestCancelActivity","attributes":{"activityId":"a"}}]`,
				))
				known := make(chan schemas.Control, 1)
				sub, err := f.nc.Subscribe(ns.Control("worker 1"), func(m *nats.Msg) {
					var c schemas.Control
					if err := json.Unmarshal(m.Data, &c); err != nil {
						t.Error(err)
					}
					known <- c
				})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = sub.Unsubscribe() }()
				f.start(startO)
				k := f.pull()
				k.report("started", `,"identity":"worker 1"`)
				f.await("o", schemas.EventActivityStarted)
				if a := k.beat(`1`); a.CancelRequested || a.Gone {
					t.Fatalf("the first heartbeat was answered %+v", a)
				}
				switch how {
				case "the decider asks":
					f.publish(ns.Signal("o", "stop"), "")
				case "the run is terminated":
					if a := f.api("terminate", `{"workflowId":"o"}`); a["error"] != nil {
						t.Fatalf("terminate answered %v", a)
					}
				}
				gone := how != "the decider asks"
				select {
				case c := <-known:
					if c.Kind != schemas.ControlCancel || c.Token != k.Token || c.Reason == "" || c.Gone != gone {
						t.Fatalf("the worker was told %+v", c)
					}
				case <-time.After(time.Minute):
					t.Fatal("the worker was told nothing")
				}
				a := k.beat(`2`)
				if gone {
					if !a.Gone {
						t.Fatalf("the heartbeat after that was answered %+v", a)
					}
					return
				}
				if !a.CancelRequested {
					t.Fatalf("the second heartbeat was answered %+v", a)
				}
				k.report("canceled", `,"details":"half done"`)
				f.completes("o")
			})
		})
	}
}

// The details of the last heartbeat come with the timeout, and to the attempt that follows it.
func TestHeartbeatDetailsAreResumed(t *testing.T) { // S1-12, S1-13
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(`,"heartbeatTimeout":10,"retry":{"initialInterval":1,"maximumAttempts":3}`))
		f.start(startO)
		first := f.pull()
		first.begun()
		for i := range 3 {
			time.Sleep(6 * time.Second)
			first.beat(map[int]string{0: `"page 1"`, 1: `"page 2"`, 2: `null`}[i])
		}
		second := f.pull() // of the attempt that follows the timeout
		if second.Attempt != 2 || second.HeartbeatDetails != "page 2" {
			t.Fatalf("attempt %d with details %v, want 2 with page 2", second.Attempt, second.HeartbeatDetails)
		}
		second.begun()
		third := f.pull() // the second attempt never beat
		if third.Attempt != 3 || third.HeartbeatDetails != "page 2" {
			t.Fatalf("attempt %d with details %v, want 3 with page 2", third.Attempt, third.HeartbeatDetails)
		}
		third.begun()
		f.result("o")
		for _, e := range f.events("o") {
			if a, ok := e.Attributes.(*schemas.ActivityTimedOut); ok {
				if a.TimeoutType != schemas.TimeoutHeartbeat || string(a.Details) != `"page 2"` {
					t.Fatalf("timed out as %+v", a)
				}
				return
			}
		}
		t.Fatalf("no timeout: %v", f.types("o"))
	})
}

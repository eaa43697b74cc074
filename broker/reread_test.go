package broker_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/schemas"
)

// A task that a parked run was to put on its list later is put there when its time has come, and once. Its activity does not stand in the
// first record: what such a one counts from is read from the server's time, which is before what its owner counted from.
func TestPassiveRunDispatchesWhatWaits(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil, func(o *broker.Options) { o.CachedRuns = 1 })
		f.decider("order", when("Signal", "["+scheduleActivity("A", `,"startDelay":60`)+","+scheduleActivity("B", `,"startDelay":30`)+"]"))
		f.start(startO)
		f.publish("drover.default.signal.o.s", "")
		for range 10 {
			time.Sleep(9 * time.Second)
			f.api("describe", `{"workflowId":"o"}`)
		}
		for _, want := range []string{"B", "A"} {
			k := f.tryPull(time.Minute)
			if k == nil {
				t.Fatalf("the task of %s never comes: %v", want, f.api("why", `{"workflowId":"o"}`)["because"])
			}
			if k.ActivityID != want {
				t.Fatalf("the task of %s came, want that of %s", k.ActivityID, want)
			}
			k.success()
		}
		if f.tryPull(time.Second) != nil {
			t.Fatal("a task is there twice")
		}
	})
}

// An attempt that never beat is late when its heartbeat timeout is over, also if its run was parked meanwhile: nobody has beaten, or it
// would not have been.
func TestPassiveRunCountsHeartbeatsFromTheStart(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil, func(o *broker.Options) { o.CachedRuns = 1 })
		f.decider("order", one(`,"heartbeatTimeout":30`))
		f.start(startO)
		f.pull().report("started", "")
		time.Sleep(20 * time.Second)
		f.api("describe", `{"workflowId":"o"}`)
		f.completes("o")
		var started, late schemas.Timestamp
		for _, e := range f.events("o") {
			switch e.Type() {
			case "ActivityStarted":
				started = e.Time
			case "ActivityTimedOut":
				late = e.Time
			}
		}
		if d := time.Duration(late.Sub(started)); d < 30*time.Second || d > 31*time.Second {
			t.Errorf("timed out after %v, want 30s", d)
		}
	})
}

// The details of a heartbeat that came before the start of its attempt was announced, as the first often does, are not forgotten when
// nothing happens for a while: the next attempt goes on from there.
func TestRunWithDetailsIsNotPassive(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil, func(o *broker.Options) { o.CachedRuns = 1 })
		f.decider("order", one(`,"retry":{"initialInterval":1}`))
		f.start(startO)
		k := f.pull()
		f.request(k.Beat, `{"token":"`+k.Token+`","details":"half of it"}`)
		k.report("started", "")
		time.Sleep(30 * time.Second)
		k.report("failed", `,"reason":"once"`)
		if err := k.msg.Ack(); err != nil {
			t.Fatal(err)
		}
		if k = f.pull(); k.HeartbeatDetails != "half of it" {
			t.Errorf("the second attempt goes on from %v", k.HeartbeatDetails)
		}
		k.success()
	})
}

package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

const sleepMinute = `[{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":60}}]`

func sleeper(d *decisionTask) string {
	switch {
	case d.has("TimerExpired"):
		return complete
	case d.has("TimerScheduled"):
		return "[]"
	}
	return sleepMinute
}

// Alarms that are due ring without a message in the inbox, and are deleted.
func TestAlarmsGoToTheOwner(t *testing.T) { // P-10, P-15
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var fires, inbox atomic.Int64
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			switch {
			case subj == ns.Fire(0):
				fires.Add(1)
			case strings.HasPrefix(subj, "drover.default.in.0."):
				inbox.Add(1)
			}
			return cutwire.Pass
		}, func(o *broker.Options) { o.CachedRuns = 40 })
		f.decider("order", sleeper)
		const n = 100
		f.starts(n)
		time.Sleep(70 * time.Second)
		for i := range n {
			id := fmt.Sprintf("w%d", i)
			f.completes(id)
			between(t, "TimerExpired", f.at(id, schemas.EventTimerScheduled), f.at(id, schemas.EventTimerExpired), time.Minute)
		}
		time.Sleep(10 * time.Second)
		if got := f.alarms(); got != 0 || fires.Load() == 0 || inbox.Load() != 0 {
			t.Errorf("got %d alarms, %d messages of rings, %d in the inbox; want 0, some, 0", got, fires.Load(), inbox.Load())
		}
	})
}

// A node that gives its partition away with rings in hand keeps none of them waiting, whether its timer worker stays for longer or not.
func TestAlarmsOfANodeThatLeaves(t *testing.T) { // P-10, P-15
	for _, tc := range []struct {
		name, first, second string
		comes               time.Duration // when the second one begins; it takes over two seconds later if it is preferred
		stops               bool
	}{
		{"the first one stops", "b", "a", 10 * time.Second, true},
		{"the second one is preferred", "a", "b", 59 * time.Second, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				first := f.node(tc.first, nil)
				f.decider("order", func(d *decisionTask) string {
					if d.has("TimerExpired") {
						time.Sleep(5 * time.Millisecond) // so that there are always some in hand
					}
					return sleeper(d)
				})
				const n = 200
				for i := range n {
					f.start(fmt.Sprintf(`{"workflowId":"w%d","type":"order"}`, i))
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(tc.comes - 2*time.Second)
				f.node(tc.second, nil)
				time.Sleep(61*time.Second + 2*time.Millisecond - tc.comes) // half of them have woken
				if got := len(first.broker.Owned()); tc.stops && got == 0 {
					t.Fatal("the node that leaves owns nothing: there are no rings in its hand")
				}
				if tc.stops {
					first.stop()
				}
				time.Sleep(5 * time.Second)
				if got := len(first.broker.Owned()); got > 0 {
					t.Fatal("the first node has the partition still")
				}
				for i := range n {
					id := fmt.Sprintf("w%d", i)
					if got := f.result0(id); got != "completed" {
						t.Fatalf("%s: %s", id, got)
					}
					between(t, id, f.at(id, schemas.EventTimerScheduled), f.at(id, schemas.EventTimerExpired), time.Minute)
				}
				if got := f.alarms(); got != 0 {
					t.Errorf("%d alarms are left", got)
				}
			})
		})
	}
}

// Whatever happens to rings on their way, to their answers, to the deletions after them and to those who have them in hand:
// each sleeper wakes, never early, and no alarm is left.
func TestAlarmsInBadTimes(t *testing.T) { // P-10, P-15, I8, I15
	for _, tc := range []struct {
		name    string
		subject string
		event   schemas.EventType // what the record on the way brings
		verdict cutwire.Verdict
	}{
		{"rings lost", ns.Fire(0), "", cutwire.Swallow},
		{"rings doubled", ns.Fire(0), "", cutwire.Twice},
		{"rings late", ns.Fire(0), "", cutwire.Late},
		{"connection lost with the rings", ns.Fire(0), "", cutwire.Break},
		{"node dies before the rings", ns.Fire(0), "", cutwire.CutBefore},
		{"node dies with rings in hand", ns.Fire(0), "", cutwire.CutAfter},
		{"node dies before the record", "drover.default.history.0.", schemas.EventTimerExpired, cutwire.CutBefore},
		{"node dies after the record", "drover.default.history.0.", schemas.EventTimerExpired, cutwire.CutAfter},
		{"answer to the record lost", "drover.default.history.0.", schemas.EventTimerExpired, cutwire.Unanswered},
		{"node dies before the deletion", "$JS.API.STREAM.PURGE." + ns.StreamAlarms(0), "", cutwire.CutBefore},
		{"node dies after the deletion", "$JS.API.STREAM.PURGE." + ns.StreamAlarms(0), "", cutwire.CutAfter},
		{"deletion lost", "$JS.API.STREAM.PURGE." + ns.StreamAlarms(0), "", cutwire.Swallow},
		{"answer to the deletion lost", "$JS.API.STREAM.PURGE." + ns.StreamAlarms(0), "", cutwire.Unanswered},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fireInBadTimes(t, tc.subject, tc.event, tc.verdict)
		})
	}
}

func fireInBadTimes(t *testing.T, on string, event schemas.EventType, verdict cutwire.Verdict) {
	t.Helper()
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var hit atomic.Int64
		judge := func(subj string, body []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, on) && (event == "" || brings(body, event)) && hit.Add(1) == 1 {
				return verdict
			}
			return cutwire.Pass
		}
		f.node("a", judge)
		f.decider("order", sleeper)
		const n = 50 // more than a purge needs
		f.starts(n)
		time.Sleep(10 * time.Second)
		f.node("b", judge)
		time.Sleep(80 * time.Second)
		if hit.Load() == 0 {
			t.Fatal("nothing of the kind was sent")
		}
		for i := range n {
			id := fmt.Sprintf("w%d", i)
			if got := f.result0(id); got != "completed" {
				t.Fatalf("%s: %s", id, got)
			}
			at := map[schemas.EventType]time.Time{}
			for _, e := range f.events(id) {
				at[e.Type()] = e.Time.Time()
			}
			slept := at[schemas.EventTimerExpired].Sub(at[schemas.EventTimerScheduled])
			if slept < time.Minute || slept > time.Minute+15*time.Second { // a claim lasts ten seconds
				t.Fatalf("%s slept for %v, want a minute, or little more", id, slept)
			}
		}
		if got := f.alarms(); got != 0 {
			t.Errorf("%d alarms are left", got)
		}
	})
}

// fire asks the owner of the partition by hand.
func (f *fleet) fire(fires ...schemas.DueRing) (a schemas.RingsAnswer) {
	f.t.Helper()
	body, err := schemas.Marshal(&schemas.Rings{V: schemas.Version, Rings: fires})
	if err != nil {
		f.t.Fatal(err)
	}
	m, err := f.post.Request(f.t.Context(), ns.Fire(0), nil, body)
	if err == nil {
		err = schemas.Unmarshal(m.Data, &a)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return a
}

// An owner answers rings that it may answer, whatever it knows of their runs, and wakes nobody early.
func TestStrangeAlarms(t *testing.T) { // P-10, P-15
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var clock atomic.Int64 // questions for the server's
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if subj == "$JS.API.STREAM.INFO."+ns.StreamHistory(0) {
				clock.Add(1)
			}
			return cutwire.Pass
		}, func(o *broker.Options) { o.CachedRuns = 1 })
		f.decider("order", sleeper)
		f.decider("short", one(complete))
		f.start(`{"workflowId":"sleeps","type":"order","run":"r1"}`)
		f.start(`{"workflowId":"closed","type":"short","run":"r1"}`)
		for i := range 10 {
			f.start(fmt.Sprintf(`{"workflowId":"other%d","type":"order"}`, i))
		}
		time.Sleep(20 * time.Second) // all are parked
		armed, err := f.post.LastBySubject(t.Context(), ns.StreamAlarms(0), ns.Alarm(0, "sleeps", "r1"))
		if err != nil {
			t.Fatal(err)
		}
		var alarm schemas.Alarm
		if err := schemas.Unmarshal(armed.Data, &alarm); err != nil || alarm.Fence == 0 {
			t.Fatalf("an alarm with the fence %d (%v), want that of the owner", alarm.Fence, err)
		}
		past := schemas.At(time.Now().Add(-time.Second))
		for _, tc := range []struct {
			name    string
			fire    schemas.DueRing
			refused bool
		}{
			{"of an unknown workflow", schemas.DueRing{WorkflowID: "unknown", Run: "r1", Due: past, Sequence: 1000, Fence: alarm.Fence}, false},
			{"of a closed run", schemas.DueRing{WorkflowID: "closed", Run: "r1", Due: past, Sequence: 1001, Fence: alarm.Fence}, false},
			{"of another run", schemas.DueRing{WorkflowID: "sleeps", Run: "r0", Due: past, Sequence: 1002, Fence: alarm.Fence}, false},
			{"without a fence", schemas.DueRing{WorkflowID: "sleeps", Run: "r1", Due: past, Sequence: armed.Seq}, true},
			{"of a later owner", schemas.DueRing{WorkflowID: "sleeps", Run: "r1", Due: past, Sequence: armed.Seq, Fence: alarm.Fence + 1}, true},
			{"far too early", schemas.DueRing{WorkflowID: "sleeps", Run: "r1", Due: alarm.Due, Sequence: armed.Seq, Fence: alarm.Fence}, true},
			{"early, of a parked run", schemas.DueRing{WorkflowID: "sleeps", Run: "r1", Due: past, Sequence: armed.Seq, Fence: alarm.Fence}, false},
		} {
			before := clock.Load()
			a := f.fire(tc.fire)
			time.Sleep(time.Second)
			if asks := clock.Load() > before; asks != (tc.name == "far too early") {
				t.Errorf("a ring %s: got %v, want the server to be asked for its time by a ring that comes too early alone", tc.name, asks)
			}
			if done := len(a.Done) == 1 && a.Done[0] == tc.fire.Sequence; done == tc.refused || a.Refused != tc.refused {
				t.Errorf("a ring %s: got %+v, want refused %v", tc.name, a, tc.refused)
			}
		}
		// It was rung in vain, so its alarm was armed anew, over the one that was said to have rung.
		again, err := f.post.LastBySubject(t.Context(), ns.StreamAlarms(0), ns.Alarm(0, "sleeps", "r1"))
		if err != nil || again.Seq <= armed.Seq {
			t.Fatalf("got %+v (%v), want an alarm after %d", again, err, armed.Seq)
		}
		if m, err := f.post.Request(t.Context(), ns.Fire(0), nil, []byte("\x07")); err != nil || len(m.Data) == 0 {
			t.Errorf("rings that cannot be decoded: %v, want a refusal", err)
		}
		time.Sleep(2 * time.Minute)
		if got := f.result0("sleeps"); got != "completed" {
			t.Fatalf("sleeps: %s", got)
		}
		between(t, "TimerExpired", f.at("sleeps", schemas.EventTimerScheduled), f.at("sleeps", schemas.EventTimerExpired), time.Minute)
	})
}

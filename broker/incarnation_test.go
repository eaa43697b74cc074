package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// An owner that found a new incarnation of a log, and died before a checkpoint of it, leaves records of that incarnation and a
// checkpoint of the one before, whose number is higher. What stands between the two is read.
func TestOwnerDiesBeforeTheFirstCheckpointOfAnIncarnation(t *testing.T) { // P-9
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", func(*decisionTask) string { return "[]" })
		inputs := func() (all []string) {
			for _, e := range f.events("o") {
				if s, ok := e.Attributes.(*schemas.Signal); ok {
					all = append(all, string(s.Input))
				}
			}
			return all
		}
		var want []string
		signals := func(from, to int) {
			for i := from; i <= to; i++ {
				f.publish("drover.default.signal.o.s", fmt.Sprint(i))
				want = append(want, fmt.Sprint(i))
			}
		}
		await := func() {
			t.Helper()
			for range 600 {
				if len(inputs()) >= len(want) {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if got := inputs(); !slices.Equal(got, want) {
				t.Fatalf("the history has signals %v, want %v", got, want)
			}
		}
		a := f.node("a", nil)
		f.start(startO)
		signals(1, 5)
		await()
		time.Sleep(2 * time.Second)
		a.stop()
		f.truncate(ns.StreamSignals(), 2)
		signals(6, 6)
		b := f.node("b", noCheckpoints)
		await()
		b.kill()
		signals(7, 9)
		f.node("c", nil)
		await()
	})
}

// A log that has lost its end above the last checkpoint is told by the records that have consumed more: what comes then under the numbers
// of what is lost is read.
func TestLogLosesWhatNoCheckpointTellsOf(t *testing.T) { // P-9
	for name, tt := range map[string]struct {
		stream string
		send   func(f *fleet, i int)
	}{
		"signals": {ns.StreamSignals(), func(f *fleet, i int) { f.publish("drover.default.signal.o.s", fmt.Sprint(i)) }},
		"inbox": {ns.StreamIn(0), func(f *fleet, i int) { // the outcome of the i-th activity
			f.publish(ns.In(0, "o", "act")+".main", fmt.Sprintf(`{"kind":"success","token":"r1.%d.1"}`, 5+i))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.decider("order", func(d *decisionTask) string {
					if !d.has("WorkflowStarted") {
						return "[]"
					}
					var all []string
					for i := range 8 {
						all = append(all, scheduleActivity(fmt.Sprint("a", i), ""))
					}
					return "[" + strings.Join(all, ",") + "]"
				})
				sent := 0
				send := func(n int) {
					t.Helper()
					for range n {
						tt.send(f, sent)
						sent++
					}
					time.Sleep(2 * time.Second)
					took := 0
					for _, e := range f.events("o") {
						switch e.Attributes.(type) {
						case *schemas.Signal, *schemas.ActivitySuccess:
							took++
						}
					}
					if took != sent {
						t.Fatalf("the history tells of %d messages, want %d", took, sent)
					}
				}
				a := f.node("a", nil)
				f.start(startO)
				f.await("o", schemas.EventActivityScheduled)
				send(2)
				a.stop()
				b := f.node("b", noCheckpoints)
				send(4)
				b.kill()
				f.truncate(tt.stream, 4)
				f.node("c", nil)
				send(2)
			})
		})
	}
}

// A checkpoint of the incarnation before says nothing of what is in the log now: none of that is purged by its number.
func TestNothingIsPurgedByAnotherIncarnation(t *testing.T) { // P-9
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", func(*decisionTask) string { return complete })
		a := f.node("a", nil)
		for i := range 10 {
			id := fmt.Sprint("o", i)
			f.publish(ns.In(0, id, "start"), `{"workflowId":"`+id+`","type":"order","run":"r"}`)
			f.result(id)
		}
		time.Sleep(2 * time.Second)
		a.stop()
		f.truncate(ns.StreamIn(0), 2)
		open := f.publish(ns.In(0, "nobody", "signal"), `{"v":1,"name":"s","source":{"workflowId":"p","run":"p-1"},"scheduledEventId":5}`)
		f.node("b", func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, ns.In(0, "p", "external")) {
				return cutwire.Swallow // its sender is not told, so that it is not consumed
			}
			return cutwire.Pass
		})
		time.Sleep(5 * time.Minute)
		if _, err := f.post.GetSeq(t.Context(), ns.StreamIn(0), open); err != nil {
			t.Errorf("message %d, which is not consumed: %v", open, err)
		}
	})
}

// Signals are purged by their subjects too, so one that is gone tells nothing of those around it. Of the inbox nothing else is gone but an end.
func TestWitnessIsGone(t *testing.T) { // P-9
	for name, log := range map[string]struct {
		stream  string
		message func(f *fleet, n int) uint64
		want    uint32
	}{
		"a signal": {ns.StreamSignals(), func(f *fleet, n int) uint64 { return f.publish(fmt.Sprint("drover.default.signal.o.s", n), "") }, 0},
		"a request": {ns.StreamIn(0), func(f *fleet, n int) uint64 {
			kind := "pause"
			if n == 2 { // the witness has a subject of its own
				kind = "resume"
			}
			return f.publish(ns.In(0, "o", kind), fmt.Sprintf(`{"workflowId":"o","requestId":"p%d"}`, n))
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.decider("order", func(*decisionTask) string { return "[]" })
				a := f.node("a", nil)
				f.start(startO)
				for n := range 2 {
					log.message(f, n)
				}
				witness, err := f.post.GetSeq(t.Context(), log.stream, log.message(f, 2))
				time.Sleep(5 * time.Second)
				a.stop()
				last := log.message(f, 3)
				if err == nil {
					err = f.post.PurgeSubject(t.Context(), log.stream, witness.Subject)
				}
				if err != nil {
					t.Fatal(err)
				}
				f.node("b", nil)
				time.Sleep(5 * time.Second)
				f.checkpoint(func(c *schemas.Checkpoint) {
					got := c.Signals
					if log.stream == ns.StreamIn(0) {
						got = c.Inbox
					}
					if got.Sequence != last || got.Incarnation != log.want {
						t.Errorf("message %d of incarnation %d is consumed, want %d of %d", got.Sequence, got.Incarnation, last, log.want)
					}
				})
			})
		})
	}
}

package broker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/schemas"
)

// repliesWith decides by what answer returns, the body of a reply.
func (f *fleet) repliesWith(answer func(*decisionTask) []byte) {
	f.t.Helper()
	_, err := f.nc.QueueSubscribe(ns.Decide("order"), "deciders", func(m *nats.Msg) {
		var task decisionTask
		if err := json.Unmarshal(m.Data, &task); err != nil {
			f.t.Error(err)
		}
		if err := m.Respond(answer(&task)); err != nil {
			f.t.Error(err)
		}
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.flush()
}

// A context that was taken fits the next task, though the event that brought it stands in its window.
func TestLargeContextIsAskedWith(t *testing.T) {
	for _, kb := range []int{200, 400, 500, 600, 900} {
		t.Run(fmt.Sprint(kb), func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				var asked atomic.Int64
				context := strings.Repeat("x", kb<<10)
				f.repliesWith(func(d *decisionTask) []byte {
					if asked.Add(1) == 1 {
						return []byte(`{"token":"` + d.Token + `","decisions":[],"context":"` + context + `"}`)
					}
					if d.Context != context {
						t.Errorf("got another context than the one of %d bytes", len(context))
					}
					return []byte(`{"token":"` + d.Token + `","decisions":` + complete + `}`)
				})
				f.start(startO)
				time.Sleep(time.Second)
				f.publish("drover.default.signal.o.go", "")
				if got := f.result("o"); got != "completed" || asked.Load() != 2 {
					t.Errorf("behind a signal the run with a context of %d KiB is %s, its decider was asked %d times, want 2: %v", kb, got, asked.Load(), f.types("o"))
				}
			})
		})
	}
}

// What cannot be sent on is refused before anything is written: bytes in msgpack take a third more in the task, which is JSON.
func TestLargeInputIsDispatchedOrRefused(t *testing.T) {
	for kb, fits := range map[int]bool{200: true, 700: true, 800: false, 900: false} {
		t.Run(fmt.Sprint(kb), func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.repliesWith(func(d *decisionTask) []byte {
					body, err := schemas.Marshal(&schemas.DecisionReply{Token: d.Token, Decisions: []schemas.Decision{{Attributes: &schemas.ScheduleActivity{
						ActivityID: "a", ActivityType: "work", List: "main", Input: schemas.Payload(strings.Repeat("\xff", kb<<10)),
					}}}})
					if err != nil {
						t.Error(err)
					}
					return body
				})
				f.start(startO)
				time.Sleep(time.Second)
				if fits {
					if k := f.tryPull(time.Second); k == nil {
						t.Errorf("an input of %d KiB was taken, and its task is on no list: %v", kb, f.types("o"))
					}
					return
				}
				var failed *schemas.DeciderFailed
				for _, e := range f.events("o") {
					if a, ok := e.Attributes.(*schemas.DeciderFailed); ok {
						failed = a
					}
				}
				if failed == nil || failed.Cause != schemas.CauseDecisionTooLarge || !strings.Contains(failed.Reason, "decision 1, input: it takes") {
					t.Errorf("got %+v for an input of %d KiB, want a failure for its size that names it: %v", failed, kb, f.types("o"))
				}
			})
		})
	}
}

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
		if task.Events == nil {
			f.t.Error("a task has events that are no array: deciders in other languages fail on null")
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
					t.Errorf("after a signal the run with a context of %d KiB is %s, its decider was asked %d times, want 2: %v", kb, got, asked.Load(), f.types("o"))
				}
			})
		})
	}
}

// What JSON makes six times as large: the context is asked with, or a reference to it (R7).
func TestContextThatGrowsInJSON(t *testing.T) {
	const page = `<li><a href='/p?a=1&b=2'>text</a></li>`
	for kb, fits := range map[int]bool{200: true, 350: true, 460: false, 700: false} {
		t.Run(fmt.Sprint(kb), func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				var asked atomic.Int64
				context := strings.Repeat(page, kb<<10/len(page))
				f.repliesWith(func(d *decisionTask) []byte {
					if asked.Add(1) == 1 {
						return []byte(`{"token":"` + d.Token + `","decisions":[],"context":"` + context + `"}`)
					}
					if fits != (d.Context == context) {
						t.Errorf("the context of %d bytes came inline: %v, want %v", len(context), !fits, fits)
					}
					return []byte(`{"token":"` + d.Token + `","decisions":` + complete + `}`)
				})
				f.start(startO)
				time.Sleep(time.Second)
				f.publish("drover.default.signal.o.go", "")
				got := f.result("o")
				if refused := f.count("o", schemas.EventDeciderFailed) > 0; got != "completed" || asked.Load() != 2 || refused {
					t.Errorf("a context of %d KiB: the run is %s, asked %d times, the context was refused: %v: %v", kb, got, asked.Load(), refused, f.types("o"))
				}
			})
		})
	}
}

// A window of which JSON makes more than a message holds is left out, and the decider asked all the same.
func TestWindowThatGrowsInJSON(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.start(startO)
		for range 2 { // each of them fits
			f.publish("drover.default.signal.o.go", strings.Repeat("\x00", 150<<10))
		}
		time.Sleep(time.Second)
		var asked, empty atomic.Int64
		f.decider("order", func(d *decisionTask) string {
			asked.Add(1)
			if len(d.Events) == 0 && d.More {
				empty.Add(1)
			}
			return complete
		})
		if got := f.result("o"); got != "completed" || asked.Load() != 1 || empty.Load() != 1 {
			t.Errorf("after two signals of 150 KiB of zeros the run is %s, asked %d times, %d of them without the window", got, asked.Load(), empty.Load())
		}
	})
}

// What cannot be sent on as it is goes as a reference: the task is JSON, where bytes take a third more,
// and text with escapes up to six times as much (R7).
func TestLargeInputIsDispatched(t *testing.T) {
	for _, tc := range []struct {
		of   string
		kb   int
		fits bool
	}{
		{"\xff", 700, true},
		{"\xff", 800, false},
		{"\x00", 100, true},
		{"\x00", 200, false},
		{"<", 200, false},
		{"x", 900, true},
	} {
		t.Run(fmt.Sprintf("%d of %q", tc.kb, tc.of), func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				input := schemas.Payload(strings.Repeat(tc.of, tc.kb<<10))
				f.repliesWith(func(d *decisionTask) []byte {
					body, err := schemas.Marshal(&schemas.DecisionReply{
						Token: d.Token, Decisions: []schemas.Decision{{Attributes: &schemas.ScheduleActivity{
							ActivityID: "a", ActivityType: "work", List: "main", Input: input,
						}}},
					})
					if err != nil {
						t.Error(err)
					}
					return body
				})
				f.start(startO)
				time.Sleep(time.Second)
				if k := f.tryPull(time.Second); k == nil {
					t.Fatalf("an input of %d KiB was taken, and its task is on no list: %v", tc.kb, f.types("o"))
				}
				for _, e := range f.recorded("o") {
					if a, ok := e.Attributes.(*schemas.ActivityScheduled); ok && !tc.fits {
						f.wantRef(a.Input, input)
					}
				}
			})
		})
	}
}

// The input of a child or a signal goes as it is, however large JSON would make it.
func TestLargeInputOfAChildInMsgpack(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("kid", func(*decisionTask) string { return complete })
		f.repliesWith(func(d *decisionTask) []byte {
			r := &schemas.DecisionReply{Token: d.Token, Decisions: []schemas.Decision{{Attributes: &schemas.CompleteWorkflow{}}}}
			if d.has("WorkflowStarted") {
				r.Decisions = []schemas.Decision{{Attributes: &schemas.StartChild{WorkflowID: "kid", WorkflowType: "kid", Input: schemas.Payload(strings.Repeat("\xff", 800<<10))}}}
			}
			body, err := schemas.Marshal(r)
			if err != nil {
				t.Error(err)
			}
			return body
		})
		f.start(startO)
		time.Sleep(10 * time.Second)
		if got := f.result("kid"); got != "completed" {
			t.Errorf("the child is %s, its parent: %v", got, f.types("o"))
		}
	})
}

// Details of a heartbeat that do not fit the next attempt's task beside its input are left out of it.
func TestLargeHeartbeatDetailsAreLeftOut(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(`,"heartbeatTimeout":10,"retry":{"initialInterval":1,"maximumAttempts":2},"input":"`+strings.Repeat("x", 850<<10)+`"`))
		f.start(startO)
		first := f.pull()
		first.begun()
		time.Sleep(5 * time.Second)
		first.beat(`"` + strings.Repeat("y", 220<<10) + `"`)
		second := f.pull() // of the attempt that follows the timeout
		if second.Attempt != 2 || second.HeartbeatDetails != nil {
			t.Fatalf("attempt %d with details %.20v, want 2 without", second.Attempt, second.HeartbeatDetails)
		}
	})
}

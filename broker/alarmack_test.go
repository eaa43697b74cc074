package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// A second alarm replaces the first one, and its acknowledgement is lost. The run closes before that is noticed: its alarm goes with it.
func TestAlarmWithoutAcknowledgementGoesWithItsRun(t *testing.T) { // I15, P-10
	for _, lost := range []int{1, 2} {
		virtually(t, 1, func(t *testing.T, f *fleet) {
			arms := 0
			f.node("a", func(subj string, _ []byte) cutwire.Verdict {
				if strings.HasPrefix(subj, "drover.default.alarm.0.o.") {
					if arms++; arms == lost {
						return cutwire.Unanswered
					}
				}
				return cutwire.Pass
			})
			f.decider("order", func(d *decisionTask) string {
				switch {
				case d.has("WorkflowStarted"):
					return `[{"type":"ScheduleTimer","attributes":{"timerId":"day","startToFireTimeout":86400}}]`
				case strings.Contains(fmt.Sprint(d.Events), "sooner"):
					return `[{"type":"ScheduleTimer","attributes":{"timerId":"hour","startToFireTimeout":3600}}]`
				}
				return complete
			})
			f.start(`{"workflowId":"o","type":"order"}`)
			time.Sleep(5 * time.Second)
			if lost == 2 {
				f.publish("drover.default.signal.o.sooner", "")
				time.Sleep(3 * time.Second)
			}
			f.publish("drover.default.signal.o.end", "")
			time.Sleep(time.Minute)
			if got := f.result("o"); got != "completed" || arms != lost {
				t.Fatalf("%s, %d alarms were published; want completed, and %d", got, arms, lost)
			}
			s, err := f.js.Stream(t.Context(), ns.StreamAlarms(0))
			if err != nil {
				t.Fatal(err)
			}
			if n := s.CachedInfo().State.Msgs; n != 0 {
				t.Errorf("ack %d lost: %d alarms of a run that closed a minute ago are left, want none", lost, n)
			}
		})
	}
}

// The acknowledgement of an alarm is lost on a connection that lives. Its ring says that it was stored, so the next one need not wait for that.
func TestFireOfAnAlarmWithoutAcknowledgement(t *testing.T) {
	for _, lost := range []bool{false, true} {
		virtually(t, 1, func(t *testing.T, f *fleet) {
			arms := 0
			f.node("a", func(subj string, _ []byte) cutwire.Verdict {
				if strings.HasPrefix(subj, "drover.default.alarm.0.o.") {
					if arms++; arms == 1 && lost {
						return cutwire.Unanswered
					}
				}
				return cutwire.Pass
			})
			fired := 0
			f.decider("order", func(d *decisionTask) string {
				if d.has("WorkflowStarted") {
					return `[{"type":"ScheduleTimer","attributes":{"timerId":"one","startToFireTimeout":4}},{"type":"ScheduleTimer","attributes":{"timerId":"two","startToFireTimeout":7}}]`
				}
				if fired++; fired == 2 {
					return complete
				}
				return "[]"
			})
			f.start(`{"workflowId":"o","type":"order"}`)
			time.Sleep(time.Minute)
			var at []time.Duration
			start := f.at("o", schemas.EventWorkflowStarted)[0]
			for _, e := range f.events("o") {
				if e.Type() == schemas.EventTimerExpired {
					at = append(at, e.Time.Time().Sub(start))
				}
			}
			if len(at) != 2 || at[1] > 8*time.Second {
				t.Errorf("lost=%v: timers of 4 and 7 s fired after %v", lost, at)
			}
		})
	}
}

// The next run of a workflow id begins before it is known what stands in the stream of alarms of the one before. That may be due in a year.
func TestAlarmOfTheRunBeforeGoes(t *testing.T) { // I15, P-10
	for name, tt := range map[string]struct {
		judge func(subj string) cutwire.Verdict
		then  func(f *fleet, a *node)
	}{
		"stored when the next run is there": {
			func(subj string) cutwire.Verdict {
				if strings.HasPrefix(subj, "drover.default.alarm.0.o.r1") {
					return cutwire.Late
				}
				return cutwire.Pass
			},
			func(*fleet, *node) {},
		},
		"left by an owner that died": {
			func(subj string) cutwire.Verdict {
				if strings.HasPrefix(subj, "$JS.API.STREAM.MSG.DELETE.") {
					return cutwire.Swallow
				}
				return noCheckpoints(subj, nil)
			},
			func(f *fleet, a *node) { a.kill(); f.node("b", nil) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				var armed atomic.Bool
				a := f.node("a", func(subj string, _ []byte) cutwire.Verdict {
					if strings.HasPrefix(subj, "drover.default.alarm.0.o.r1") {
						armed.Store(true)
					}
					return tt.judge(subj)
				})
				f.decider("order", signaled)
				f.start(startO)
				for !armed.Load() { // for its timeout, in a year
					time.Sleep(10 * time.Millisecond)
				}
				f.publish(ns.Signal("o", "go"), "")
				f.result("o")
				f.start(`{"workflowId":"o","type":"order","run":"r2"}`)
				f.await("o", schemas.EventDeciderCompleted)
				tt.then(f, a)
				time.Sleep(time.Minute)
				if n := f.alarms(); n != 1 {
					t.Errorf("%d alarms are in the stream, want that of the second run alone", n)
				}
			})
		})
	}
}

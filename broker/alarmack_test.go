package broker_test

import (
	"fmt"
	"strings"
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
func TestRingOfAnAlarmWithoutAcknowledgement(t *testing.T) {
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
				t.Errorf("lost=%v: timers of 4 and 7 s fired behind %v", lost, at)
			}
		})
	}
}

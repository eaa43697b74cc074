package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// A page of a history fits a message, whatever its events hold: what takes more room than was foreseen is left to the next page.
func TestPagesOfLargeEvents(t *testing.T) {
	const escaped = 90 // bytes that take six times as much in JSON
	for name, decisions := range map[string]func() (all []string){
		"values": func() (all []string) {
			for i := range 14 {
				all = append(all, stateDecision("SetState", fmt.Sprint("k", i), `,"value":"`+strings.Repeat("x", 60<<10)+`"`))
			}
			return all
		},
		"read values": func() (all []string) {
			for range 14 {
				all = append(all, stateDecision("GetState", "shared", ""))
			}
			return all
		},
		"ids and escapes": func() (all []string) {
			for i := range 700 {
				id := fmt.Sprint(i) + strings.Repeat("é", 120)
				all = append(all, `{"type":"RecordMarker","attributes":{"markerName":"`+id+`","details":{"$text":"`+strings.Repeat(`\u0001`, escaped)+`"}}}`)
			}
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				const rounds = 3
				decided := 0
				f.decider("order", func(d *decisionTask) string {
					switch decided++; {
					case d.has("WorkflowStarted"):
						return "[" + stateDecision("SetState", "shared", `,"value":"`+strings.Repeat("x", 60<<10)+`"`) + "]"
					case decided > rounds:
						return complete
					}
					return "[" + strings.Join(append(decisions(), scheduleTimer(fmt.Sprint(decided))), ",") + "]"
				})
				f.node("a", nil)
				f.start(startO)
				time.Sleep(time.Minute)
				f.completes("o")
				var all []schemas.Event
				for more := true; more; {
					var page schemas.HistoryResponse
					after := int64(len(all))
					f.apiInto(&page, "history", fmt.Sprintf(`{"workflowId":"o","after":%d,"limit":10000}`, after))
					if page.Error != nil {
						t.Fatalf("after event %d: %v", after, page.Error)
					}
					all, more = append(all, page.Events...), page.More
				}
				for i, e := range all {
					if e.ID != int64(i+1) {
						t.Fatalf("event %d has the id %d", i+1, e.ID)
					}
				}
				if last := all[len(all)-1].Type(); last != schemas.EventWorkflowSuccess {
					t.Fatalf("the last of %d events is %s", len(all), last)
				}
			})
		})
	}
}

func scheduleTimer(id string) string {
	return `{"type":"ScheduleTimer","attributes":{"timerId":"` + id + `","startToFireTimeout":1}}`
}

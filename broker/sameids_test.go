package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// A lock with a limit is taken by many at once, left by many at once, and taken again.
func TestFenceOfALimitedLockGrows(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("many", mutex("L", `,"limit":30`))
		f.decider("one", mutex("L", ``))
		for i := range 30 {
			f.publish(ns.In(0, fmt.Sprintf("w%d", i), "start"), fmt.Sprintf(`{"workflowId":"w%d","type":"many","run":"r%d"}`, i, i))
		}
		highest := uint64(0)
		for i := range 30 {
			highest = max(highest, f.happens(fmt.Sprintf("w%d", i), "LockAcquired").Attributes.(*schemas.LockAcquired).Fence)
		}
		for i := range 30 {
			f.publish(ns.Signal(fmt.Sprintf("w%d", i), "go"), "")
		}
		for i := range 30 {
			f.completes(fmt.Sprintf("w%d", i))
		}
		f.stands("L", "", "", "")
		f.start(`{"workflowId":"x","type":"one"}`)
		got := f.happens("x", "LockAcquired").Attributes.(*schemas.LockAcquired).Fence
		f.publish(ns.Signal("x", "go"), "")
		f.completes("x")
		if got <= highest {
			t.Fatalf("the next holder has fence %d, after %d", got, highest)
		}
	})
}

// Two workflows whose starters chose the same run id have each its own history, when two people page through them at the same time.
func TestPagesOfEqualRunIDs(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(d *decisionTask) string { return "[]" })
		f.start(`{"workflowId":"b","type":"order","run":"1"}`)
		for i := range 10 {
			f.publish(ns.Signal("b", "go"), "")
			if i == 2 {
				f.start(`{"workflowId":"a","type":"order","run":"1"}`)
			}
			if i > 2 {
				f.publish(ns.Signal("a", "go"), "")
			}
			time.Sleep(100 * time.Millisecond)
		}
		after := map[string]int64{}
		more := map[string]bool{"a": true, "b": true}
		for more["a"] || more["b"] {
			for _, id := range []string{"b", "a"} {
				if !more[id] {
					continue
				}
				var page schemas.HistoryResponse
				f.apiInto(&page, "history", fmt.Sprintf(`{"workflowId":"%s","after":%d,"limit":5}`, id, after[id]))
				if page.Error != nil {
					t.Fatalf("%s after %d: %v", id, after[id], page.Error)
				}
				for _, e := range page.Events {
					if e.ID != after[id]+1 {
						t.Fatalf("%s: event %d after %d", id, e.ID, after[id])
					}
					after[id] = e.ID
				}
				more[id] = page.More
			}
		}
	})
}

// A start with a request id and without a workflow id is repeated.
func TestStartWithoutIDIsRepeated(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(d *decisionTask) string { return "[]" })
		one := f.start(`{"type":"order","requestId":"q1"}`)
		two := f.start(`{"type":"order","requestId":"q1"}`)
		if one["run"] != two["run"] || one["workflowId"] != two["workflowId"] {
			t.Fatalf("%v\n%v", one, two)
		}
	})
}

// A signal with an id is given to a new run of a workflow id, whose predecessor had one of the same id.
func TestSignalIDOfTheRunBefore(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", signaled)
		for range 2 {
			f.start(startO)
			f.api("signal", `{"workflowId":"o","name":"go","requestId":"daily-1"}`)
			time.Sleep(5 * time.Minute) // after the server's own window
		}
		if got := f.result0("o"); got != "completed" {
			t.Fatalf("the second run is %s: %v; dead letters: %v", got, f.types("o"), f.dead())
		}
	})
}

// One event, with its id, is told to two workflows.
func TestOneSignalIDForTwoWorkflows(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", signaled)
		for _, id := range []string{"o1", "o2"} {
			f.start(`{"workflowId":"` + id + `","type":"order"}`)
		}
		for _, id := range []string{"o1", "o2"} {
			f.api("signal", `{"workflowId":"`+id+`","name":"go","requestId":"event-4711"}`)
		}
		time.Sleep(time.Minute)
		for _, id := range []string{"o1", "o2"} {
			if got := f.result0(id); got != "completed" {
				t.Errorf("%s is %s: %v; dead letters: %v", id, got, f.types(id), f.dead())
			}
		}
	})
}

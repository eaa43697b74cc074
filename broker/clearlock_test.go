package broker_test

import (
	"fmt"
	"testing"
	"time"
)

// A key lock-NAME is cleared while the run that has just come to hold the lock has not heard of it: its owner is dead.
func TestClearLockOfAHolderThatWasNotTold(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		b := f.node("b", nil)
		time.Sleep(30 * time.Second) // they share
		f.decider("one", mutex("L", ""))
		f.decider("clear", when("StateCleared", complete, "Signal", `[{"type":"ClearState","attributes":{"key":"lock-L"}}]`))
		owner := func(id string) string {
			s, _ := f.api("describe", `{"workflowId":"`+id+`"}`)["owner"].(string)
			return s
		}
		find := func(prefix, typ, on string) string {
			for i := range 50 {
				id := fmt.Sprintf("%s%d", prefix, i)
				f.start(`{"workflowId":"` + id + `","type":"clear"}`)
				o := owner(id)
				f.api("terminate", `{"workflowId":"`+id+`"}`)
				if o == on {
					f.start(`{"workflowId":"` + id + `","type":"` + typ + `"}`)
					return id
				}
			}
			t.Fatal("nobody on " + on)
			return ""
		}
		g := find("g", "one", "a")
		f.happens(g, "LockAcquired")
		c := find("c", "clear", "a")
		h := find("h", "one", "b")
		f.stands("L", "", g, h)
		b.wire.Kill()
		f.publish(ns.Signal(g, "go"), "")
		f.stands("L", "", h, "")
		f.publish(ns.Signal(c, "go"), "")
		for wait := 0; !f.has(c, "StateCleared"); wait++ {
			if wait == 30 {
				t.Fatal("the key is not cleared after 30 minutes")
			}
			time.Sleep(time.Minute)
		}
		if !f.has(h, "LockBroken") {
			t.Error("the holder keeps the lock")
		}
		f.publish(ns.Signal(h, "go"), "")
		f.completes(h)
		f.completes(c)
	})
}

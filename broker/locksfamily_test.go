package broker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// A child enters what its parent's chain holds, at once, also when it stood in line before.
func TestLockOfAnAncestor(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("parent", when(
			"ChildSuccess", complete,
			"LockAcquired", `[{"type":"StartChild","attributes":{"workflowId":"child","workflowType":"middle"}}]`,
			"WorkflowStarted", "["+acquire("L", "")+"]",
		))
		f.decider("middle", when(
			"ChildSuccess", complete,
			"WorkflowStarted", `[{"type":"StartChild","attributes":{"workflowId":"grandchild","workflowType":"leaf"}}]`,
		))
		f.decider("leaf", mutex("L", ""))
		f.start(`{"workflowId":"top","type":"parent"}`)
		got := f.happens("top", "LockAcquired").Attributes.(*schemas.LockAcquired)
		child := f.happens("grandchild", "LockAcquired").Attributes.(*schemas.LockAcquired)
		if child.Fence != got.Fence || child.Holder == nil || child.Holder.WorkflowID != "top" {
			t.Fatalf("the grandchild acquired %+v, the parent %+v", child, got)
		}
		f.stands("L", "", "top", "")
		f.publish(ns.Signal("grandchild", "go"), "")
		f.completes("top")
		f.stands("L", "", "", "")
	})
}

// A child that waits enters when its parent gets the lock, or the two would wait for each other.
func TestLockOfAnAncestorThatComesLater(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("one", mutex("L", ""))
		f.start(`{"workflowId":"first","type":"one"}`)
		f.happens("first", "LockAcquired")
		f.decider("parent", when(
			"ChildSuccess", complete,
			"Signal", `[{"type":"StartChild","attributes":{"workflowId":"child","workflowType":"one"}}]`,
			"WorkflowStarted", "["+acquire("L", "")+"]",
		))
		f.start(`{"workflowId":"top","type":"parent"}`)
		f.stands("L", "", "first", "top")
		f.publish(ns.Signal("top", "go on"), "")
		f.stands("L", "", "first", "top child")
		f.publish(ns.Signal("first", "go"), "")
		f.happens("top", "LockAcquired")
		if got := f.happens("child", "LockAcquired").Attributes.(*schemas.LockAcquired); got.Holder == nil || got.Holder.WorkflowID != "top" {
			t.Fatalf("the child acquired %+v", got)
		}
		f.publish(ns.Signal("child", "go"), "")
		f.completes("top")
		f.stands("L", "", "", "")
	})
}

// A run that continues as new hands its lock on, without letting go.
func TestLockOverContinueAsNew(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		var rounds atomic.Int64
		f.decider("chain", func(d *decisionTask) string {
			switch {
			case d.has("Signal"):
				return complete
			case d.has("LockAcquired") && rounds.Load() < 3:
				rounds.Add(1)
				return `[{"type":"ContinueAsNew"}]`
			case d.has("WorkflowStarted"):
				return "[" + acquire("L", "") + "]"
			}
			return "[]"
		})
		f.decider("one", mutex("L", ""))
		f.start(`{"workflowId":"w1","type":"chain"}`)
		for rounds.Load() < 3 {
			time.Sleep(10 * time.Millisecond)
		}
		f.start(`{"workflowId":"w2","type":"one"}`)
		r := f.stands("L", "", "w1", "w2")
		got := f.happens("w1", "LockAcquired").Attributes.(*schemas.LockAcquired)
		if got.Fence != r.Holders[0].Fence || r.Next != got.Fence+1 {
			t.Fatalf("the chain holds %+v, its last run acquired %+v", r, got)
		}
		a.kill()
		f.node("b", nil)
		f.publish(ns.Signal("w1", "go"), "")
		f.completes("w1")
		f.happens("w2", "LockAcquired")
		f.publish(ns.Signal("w2", "go"), "")
		f.completes("w2")
		f.stands("L", "", "", "")
	})
}

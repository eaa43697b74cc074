package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// The type and the task list of the load; holdType has no decider, so that its runs stay open until they are ended.
const (
	planType = "plan"
	planList = "plan"
	holdType = "hold"
	poke     = "poke"
)

// plan is the input of a workflow of the load: activities one after the other, a timer after the first, a child, signals
// to wait for, and so many continuations, and perhaps all that under a lock, which the child enters by its parent and a
// continuation has from the run before.
type plan struct {
	Steps   int  `json:"steps"`
	Once    bool `json:"once,omitempty"`    // the activities are not idempotent
	Timer   int  `json:"timer,omitempty"`   // milliseconds; 0: none
	Child   bool `json:"child,omitempty"`   // a child with one activity
	Signals int  `json:"signals,omitempty"` // to wait for
	Renew   int  `json:"renew,omitempty"`   // continuations
	Wait    bool `json:"wait,omitempty"`    // until somebody cancels it
	Lock    int  `json:"lock,omitempty"`    // all of it under the lock of this number; 0: none
	Places  int  `json:"places,omitempty"`  // how many may hold that lock
}

func randomPlan(rng *rand.Rand) plan {
	p := plan{Steps: 1 + rng.IntN(4), Once: rng.IntN(3) == 0}
	if rng.IntN(3) == 0 {
		p.Timer = 20 + rng.IntN(600)
	}
	switch rng.IntN(6) {
	case 0:
		p.Child = true
	case 1, 2:
		p.Signals = 1 + rng.IntN(3)
	case 3:
		p.Renew = 1
	case 4:
		p.Wait = true
	}
	if rng.IntN(3) == 0 {
		p.Lock = 1 + rng.IntN(locks)
		p.Places = 1 + p.Lock%2
	}
	return p
}

// locks is how many locks there are: few, so that many wait.
const locks = 4

// fits tells whether a result is one that the plan may have: an activity that is not idempotent may have been interrupted.
func (p plan) fits(result string) bool {
	rest := result
	for i := range p.Steps {
		word := fmt.Sprintf("%d;", (i+1)*(i+1))
		after, ok := strings.CutPrefix(rest, word)
		if !ok && p.Once {
			after, ok = strings.CutPrefix(rest, interrupted)
		}
		if !ok {
			return false
		}
		rest = after
	}
	if p.Child {
		after, ok := strings.CutPrefix(rest, "child 1;;")
		if !ok {
			return false
		}
		rest = after
	}
	return rest == ""
}

// interrupted is what stands in a result for an activity that began, was not heard of again, and must not run twice.
const interrupted = "interrupted;"

// planDecider decides over plans.
var planDecider = decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
	v, err := task.View(ctx)
	if err != nil {
		return nil, err
	}
	var in plan
	if err := v.Input().Decode(&in); err != nil {
		return []schemas.Decision{decider.Fail("bad-input", err.Error())}, nil
	}
	if v.CancelRequested() {
		return []schemas.Decision{decider.Cancel("as asked")}, nil
	}
	return in.decide(v)
})

func (p plan) decide(v *decider.View) ([]schemas.Decision, error) {
	if p.Lock > 0 {
		lock := fmt.Sprintf("lock-%d", p.Lock)
		switch l := v.Lock(lock, ""); l.Status {
		case 0:
			return []schemas.Decision{decider.AcquireLock(lock, decider.Limit(p.Places))}, nil
		case decider.LockWaiting:
			return nil, nil
		case decider.LockHeld:
		default:
			return []schemas.Decision{decider.Fail("lock "+l.Status.String(), l.Reason)}, nil
		}
	}
	var done strings.Builder
	for i := range p.Steps {
		id := fmt.Sprintf("step-%d", i+1)
		switch status, out, reason := v.Activity(id); {
		case status == 0:
			opts := []decider.ActivityOption{decider.List(planList)}
			if p.Once {
				opts = append(opts, decider.NotIdempotent())
			}
			typ := "square"
			if i%2 == 0 {
				typ = "odd square"
			}
			return []schemas.Decision{decider.Schedule(id, typ, i+1, opts...)}, nil
		case status == decider.ActivitySucceeded:
			done.WriteString(string(out) + ";")
		case status.Closed() && p.Once && reason == schemas.ReasonInterrupted:
			done.WriteString(interrupted)
		case status.Closed():
			return []schemas.Decision{decider.Fail(reason, id)}, nil
		default:
			return nil, nil
		}
		if i == 0 && p.Timer > 0 {
			switch v.Timer("pause") {
			case 0:
				return []schemas.Decision{decider.Timer("pause", time.Duration(p.Timer)*time.Millisecond)}, nil
			case decider.TimerOpen:
				return nil, nil
			}
		}
	}
	if p.Child {
		switch c := v.Child(v.Started().WorkflowID + "-child"); {
		case c.Status == 0:
			return []schemas.Decision{decider.StartChild(v.Started().WorkflowID+"-child", planType, plan{Steps: 1, Lock: p.Lock, Places: p.Places})}, nil
		case !c.Status.Closed():
			return nil, nil
		default:
			var said string
			if err := c.Result.Decode(&said); err != nil {
				said = c.Reason
			}
			done.WriteString("child " + said + ";")
		}
	}
	switch {
	case p.Wait, len(v.Signals(poke)) < p.Signals:
		return nil, nil
	case p.Renew > 0:
		p.Renew--
		return []schemas.Decision{decider.ContinueAsNew(p)}, nil
	default:
		return []schemas.Decision{decider.Complete(done.String())}, nil
	}
}

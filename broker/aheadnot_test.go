package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// What may not be offered, what is not alone, what is too large, and what no worker has asked for properly is not decided ahead.
func TestWhatIsNotDecidedAhead(t *testing.T) {
	sixteen := make([]string, 16)
	for i := range sixteen {
		sixteen[i] = fmt.Sprint("l", i)
	}
	for name, c := range map[string]struct {
		lists  []string
		next   func(*schemas.DecisionTask, int) []schemas.Decision
		took   time.Duration
		second int // tasks of the second decision, if not one
	}{
		"not idempotent":      {next: steps(2, decider.NotIdempotent())},
		"urgent":              {next: steps(2, decider.Priority(3))},
		"slow":                {took: 21 * time.Millisecond},
		"another list":        {lists: []string{"other"}},
		"no lists":            {lists: []string{}},
		"a list without name": {lists: []string{"main", ""}},
		"no name of a list":   {lists: []string{"main", strings.Repeat("x", 65)}},
		"too many lists":      {lists: append(sixteen, "main")},
		"two at a time": {next: func(t *schemas.DecisionTask, done int) []schemas.Decision {
			switch d := steps(2)(t, done); {
			case done == 2: // of three
				return nil
			case done != 1 || len(d) == 0:
				return d
			}
			return []schemas.Decision{decider.Schedule("x", "work", 1, decider.List("main")), decider.Schedule("y", "work", 1, decider.List("main"))}
		}, second: 2},
		"a large input": {next: func(t *schemas.DecisionTask, done int) []schemas.Decision {
			d := steps(2)(t, done)
			if done == 1 && len(d) > 0 {
				return []schemas.Decision{decider.Schedule("x", "work", strings.Repeat("x", 65<<10), decider.List("main"))}
			}
			return d
		}},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				next := c.next
				if next == nil {
					next = steps(2)
				}
				p := f.plays("w1", next)
				if c.lists != nil {
					p.lists = c.lists
				}
				f.start(startO)
				for seq := range 1 + max(1, c.second) {
					f.success(f.taskAt(uint64(seq+1)), max(c.took, time.Millisecond))
				}
				f.flush()
				if n := len(p.ahead); n != 0 {
					t.Errorf("%d tasks came with their decisions, want none", n)
				}
				if c.second == 0 {
					f.completes("o")
				}
			})
		})
	}
}

// A retry is decided ahead if its input is in the window; after another decision it is not, and loses no time by that.
func TestRetriesAhead(t *testing.T) {
	for _, between := range []bool{false, true} {
		t.Run(fmt.Sprintf("after another decision %t", between), func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				g, p, _ := f.foreseen(steps(2, decider.Retry(schemas.RetryPolicy{InitialInterval: schemas.Seconds(1)})))
				r := g.success()
				r.Kind, r.Reason, r.Result = schemas.ReportFailed, "bad luck", nil // a decision with a failure counts for nothing
				if !g.hand(r) {
					t.Fatal("the failure was not taken")
				}
				failed := time.Now()
				if between {
					f.api("signal", `{"workflowId":"o","name":"s"}`)
					k := f.pull()
					if took := time.Since(failed); k.Attempt != 2 || k.NotIdempotent || took > 1100*time.Millisecond {
						t.Errorf("got attempt %d after %v, ask first: %t, want the second after a second", k.Attempt, took, k.NotIdempotent)
					}
					f.success(k, time.Millisecond)
				} else {
					second := p.foresees()
					if took := time.Since(failed); second.task.Ahead.Task.Attempt != 2 || took > 1100*time.Millisecond {
						t.Errorf("got attempt %d after %v, want the second after a second", second.task.Ahead.Task.Attempt, took)
					}
					r := second.success()
					if !second.hand(r) {
						t.Fatal("the outcome was not taken")
					}
					want := second.assumed(r)
					if diff := cmp.Diff(want, f.events("o")[want[0].ID-1:want[len(want)-1].ID]); diff != "" {
						t.Errorf("what was decided upon (-assumed +history):\n%s", diff)
					}
				}
				f.completes("o")
				if got := f.count("o", schemas.EventActivityRetryScheduled); got != 1 {
					t.Errorf("%d retries, want one", got)
				}
			})
		})
	}
}

// A type that a worker gives back, since it does not know it, is not decided ahead for a while.
func TestTaskAheadIsGivenBack(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		p := f.plays("w1", steps(1))
		var ahead []bool
		for i := range 9 {
			id := fmt.Sprint("w", i)
			f.start(`{"workflowId":"` + id + `","type":"order","run":"` + id + `"}`)
			time.Sleep(10 * time.Millisecond)
			came := len(p.ahead) > 0
			if ahead = append(ahead, came); came {
				g := p.foresees()
				began := time.Now()
				f.publish(g.task.Ahead.Task.Report, `{"token":"`+g.task.Ahead.Task.Token+`","kind":"returned","identity":"w1"}`)
				k := f.pull()
				if took := time.Since(began); k.Token != g.task.Ahead.Task.Token || took > 100*time.Millisecond {
					t.Errorf("got task %s after %v, want %s at once", k.Token, took, g.task.Ahead.Task.Token)
				}
				k.success()
			} else {
				f.success(f.pull(), time.Millisecond)
			}
			f.completes(id)
		}
		if diff := cmp.Diff([]bool{false, true, false, true, false, false, true, false, false}, ahead); diff != "" {
			t.Errorf("came with their decisions (-want +got):\n%s", diff)
		}
	})
}

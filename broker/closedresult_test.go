package broker_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/internal/cutwire"
)

// The result of a run that is not in memory is that which its owner told when it ended, and takes one question.
func TestResultOfARunThatIsNotInMemory(t *testing.T) { // P-2
	virtually(t, 1, func(t *testing.T, f *fleet) {
		first := f.node("a", nil)
		f.decider("completes", func(*decisionTask) string { return complete })
		f.decider("fails", func(*decisionTask) string {
			return `[{"type":"FailWorkflow","attributes":{"reason":"no","details":"why"}}]`
		})
		f.decider("cancels", when("WorkflowCancelRequested", `[{"type":"CancelWorkflow","attributes":{"details":"as asked"}}]`))
		f.decider("continues", when("Signal", `[{"type":"ContinueAsNew"}]`))
		f.decider("waits", func(*decisionTask) string { return "[]" })
		for id, start := range map[string]string{
			"completed": `"type":"completes"`, "failed": `"type":"fails"`, "canceled": `"type":"cancels"`, "terminated": `"type":"waits"`,
			"timed-out": `"type":"waits","executionStartToCloseTimeout":30`, "continued": `"type":"continues"`, "open": `"type":"waits"`,
			"again": `"type":"completes"`,
		} {
			f.start(`{"workflowId":"` + id + `","run":"r-` + id + `",` + start + `}`)
		}
		time.Sleep(time.Second)
		f.api("cancel", `{"workflowId":"canceled"}`)
		f.api("terminate", `{"workflowId":"terminated","reason":"enough","details":"of it"}`)
		f.api("signal", `{"workflowId":"continued","name":"go"}`)
		f.start(`{"workflowId":"again","run":"r-next","type":"waits"}`)
		time.Sleep(31 * time.Second)
		requests := map[string]int64{ // how many questions each takes
			`{"workflowId":"completed"}`: 1, `{"workflowId":"completed","run":"r-completed"}`: 1, `{"workflowId":"failed"}`: 1, `{"workflowId":"canceled"}`: 1,
			`{"workflowId":"terminated"}`: 1, `{"workflowId":"timed-out"}`: 1, `{"workflowId":"again","run":"r-again"}`: 1,
			`{"workflowId":"failed","inline":4}`: 1, `{"workflowId":"failed","inline":5}`: 1,
			`{"workflowId":"continued","run":"r-continued"}`: 0, `{"workflowId":"continued"}`: 0, `{"workflowId":"open"}`: 0, `{"workflowId":"again"}`: 0,
			`{"workflowId":"nobody"}`: 0, `{"workflowId":"completed","run":"none"}`: 0,
		}
		known := map[string]map[string]any{}
		for q := range requests {
			known[q] = f.api("result", q)
		}
		first.stop()
		var asked atomic.Int64
		f.node("b", func(subj string, _ []byte) cutwire.Verdict {
			if subj == "$JS.API.DIRECT.GET."+ns.StreamHistory(0) || subj == "$JS.API.STREAM.MSG.GET."+ns.StreamHistory(0) {
				asked.Add(1)
			}
			return cutwire.Pass
		})
		time.Sleep(time.Minute)
		for q, most := range requests {
			asked.Store(0)
			if diff := cmp.Diff(known[q], f.api("result", q)); diff != "" {
				t.Errorf("%s (-the first owner +the next):\n%s", q, diff)
			}
			if got := asked.Load(); most > 0 && got > most {
				t.Errorf("%s: read by %d questions, want %d", q, got, most)
			}
		}
		if got := known[`{"workflowId":"timed-out"}`]["status"]; got != "timedOut" {
			t.Errorf("got status %v of a run without time, want timedOut", got)
		}
		want := map[string]any{"v": 1.0, "run": "r-failed", "status": "failed", "reason": "no", "large": 5.0}
		if diff := cmp.Diff(want, known[`{"workflowId":"failed","inline":4}`]); diff != "" {
			t.Errorf("a result that is too large to be inline (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(known[`{"workflowId":"failed"}`], known[`{"workflowId":"failed","inline":5}`]); diff != "" {
			t.Errorf("a result that may be inline (-without a bound +with it):\n%s", diff)
		}
	})
}

// The alarm of a run that has closed, and that its owner could not delete, rings at an owner that knows nothing of the run: one question tells it that
// nobody needs the alarm any more.
func TestFireOfAClosedRunThatIsNotInMemory(t *testing.T) { // P-10, I15
	virtually(t, 1, func(t *testing.T, f *fleet) {
		first := f.node("a", every("$JS.API.STREAM.MSG.DELETE."+ns.StreamAlarms(0), cutwire.Swallow))
		f.decider("order", tenMinutes)
		f.decider("lasts", tenMinutes)
		f.starts(3)
		f.start(`{"workflowId":"open","type":"lasts"}`)
		time.Sleep(time.Minute)
		for i := range 3 {
			f.api("terminate", fmt.Sprintf(`{"workflowId":"w%d"}`, i))
		}
		time.Sleep(time.Minute)
		first.kill()
		if got := f.alarms(); got != 4 {
			t.Fatalf("%d alarms stand, want those of all runs", got)
		}
		reads, wire := readsOf(`last_by_subj`, pass)
		others, also := readsOf(bySubject, pass)
		f.node("b", func(subj string, body []byte) cutwire.Verdict { return max(wire(subj, body), also(subj, body)) })
		time.Sleep(time.Minute)
		reads.Store(0)
		others.Store(0)
		time.Sleep(10 * time.Minute)
		if got := f.alarms(); got != 0 {
			t.Errorf("%d alarms stand", got)
		}
		if got := f.result0("open"); got != "completed" {
			t.Errorf("the open run is %s", got)
		}
		if got, by := reads.Load(), others.Load(); got > 6 || by > 1 {
			t.Errorf("%d last records were read, and %d runs; want each of the four, and the open one", got, by)
		}
	})
}

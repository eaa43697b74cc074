package broker_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// The start of a child whose acknowledgement is lost is not sent again once its refusal has come: the second would begin a child that
// its parent has given up.
func TestRefusedChildIsNotStartedAgain(t *testing.T) { // P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nth(1, ns.In(0, "kid", "start"), cutwire.Unanswered))
		f.decider("order", parent)
		f.decider("kid", func(*decisionTask) string { return "[]" })
		f.start(`{"workflowId":"kid","type":"kid","run":"own"}`)
		f.start(startO)
		f.completes("o") // refused: the id is in use
		f.api("terminate", `{"workflowId":"kid","reason":"it is over"}`)
		time.Sleep(30 * time.Second) // longer than an acknowledgement is waited for
		if runs := f.runsOf("kid"); len(runs) != 1 {
			t.Fatalf("the child has begun after its refusal: runs %v", runs)
		}
	})
}

// Nor is a start begun that was refused and is read again by the next owner, when what it was refused for has closed: the record of that
// close, which no message has caused, says that it has been judged.
func TestRefusedStartIsNotBegunByTheNextOwner(t *testing.T) { // P-3, P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", noCheckpoints)
		f.decider("order", parent)
		f.decider("kid", func(*decisionTask) string {
			time.Sleep(5 * time.Second)
			return complete
		})
		f.start(`{"workflowId":"kid","type":"kid","run":"own"}`)
		f.start(startO)
		f.completes("o")
		f.completes("kid")
		a.kill()
		f.node("b", nil)
		time.Sleep(10 * time.Second)
		if runs := f.runsOf("kid"); len(runs) != 1 {
			t.Fatalf("a start that was refused has begun a run: runs %v", runs)
		}
	})
}

// While the parent has no answer it is sent again: the child begins, whichever of the two starts was refused.
func TestUnansweredChildIsStartedAgain(t *testing.T) { // P-5
	for name, verdict := range map[string]cutwire.Verdict{"lost": cutwire.Swallow, "acknowledgement lost": cutwire.Unanswered} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				lost := false // the first answer to the parent, too
				start := nth(1, ns.In(0, "kid", "start"), verdict)
				f.node("a", func(subj string, body []byte) cutwire.Verdict {
					if verdict == cutwire.Unanswered && !lost && subj == ns.In(0, "o", "child") {
						lost = true
						return cutwire.Swallow
					}
					return start(subj, body)
				})
				f.decider("order", parent)
				f.decider("kid", func(*decisionTask) string { return complete })
				f.start(startO)
				f.completes("o")
				f.wantTypes("o", withChild...)
				if runs := f.runsOf("kid"); len(runs) != 1 {
					t.Fatalf("runs of the child %v, want one", runs)
				}
			})
		})
	}
}

// Nor once it is known to have begun, however long it runs: one day nobody remembers it.
func TestStartedChildIsNotStartedAgain(t *testing.T) { // P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var starts atomic.Int32
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if subj == ns.In(0, "kid", "start") {
				starts.Add(1)
				return cutwire.Unanswered
			}
			return cutwire.Pass
		})
		f.decider("order", parent)
		f.decider("kid", func(*decisionTask) string { return "[]" })
		f.start(startO)
		f.await("o", schemas.EventChildStarted)
		time.Sleep(time.Minute) // longer than an acknowledgement is waited for
		if n := starts.Load(); n != 1 {
			t.Errorf("the start of a child that has begun was sent %d times, want once", n)
		}
	})
}

// The first start was refused, which the parent hears after the second one has begun the child: it must not believe it.
func TestRefusalThatIsLaterThanTheSecondStart(t *testing.T) { // P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		start := nth(1, ns.In(0, "kid", "start"), cutwire.Unanswered)
		a := f.node("a", func(subj string, body []byte) cutwire.Verdict {
			if subj == ns.In(0, "o", "child") {
				return cutwire.Late
			}
			return start(subj, body)
		})
		a.wire.Delay(15 * time.Second) // longer than an acknowledgement is waited for
		f.decider("order", parent)
		f.decider("kid", func(*decisionTask) string { return complete })
		f.start(`{"workflowId":"kid","type":"other","run":"own"}`)
		f.start(startO)
		f.await("o", schemas.EventChildScheduled)
		f.api("terminate", `{"workflowId":"kid","reason":"it is over"}`)
		f.completes("o")
		f.wantTypes("o", withChild...)
		if runs := f.runsOf("kid"); len(runs) != 2 {
			t.Fatalf("runs %v, want the one that was in the way and the child", runs)
		}
	})
}

// An end that is decided, and not in the history, is nothing that a parent may hear of: with its owner it is gone, and the decider may
// decide otherwise when it is asked again.
func TestParentHearsOfNoEndBeforeItsRecord(t *testing.T) { // P-1
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", parent)
		asked := 0
		f.decider("kid", func(*decisionTask) string {
			if asked++; asked > 1 {
				return "[]"
			}
			time.Sleep(50 * time.Millisecond) // its start is on its way without it
			return complete
		})
		records, ended := 0, make(chan struct{})
		a := f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "drover.default.history.0.kid.") {
				if records++; records == 2 {
					close(ended)
				}
			}
			return every("drover.default.history.", cutwire.Late)(subj, nil)
		})
		a.wire.Delay(100 * time.Millisecond)
		f.start(startO)
		<-ended
		time.Sleep(50 * time.Millisecond)
		a.kill()
		f.node("b", nil)
		f.await("o", schemas.EventChildStarted)
		time.Sleep(time.Minute)
		f.wantTypes("kid", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted")
		f.wantTypes("o", withChild[:6]...)
	})
}

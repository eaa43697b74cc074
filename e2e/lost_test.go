package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/e2e/stranger"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

// The only worker of a list is killed, and none follows. The master has the attempt interrupted all the same: what must not
// run twice fails, so that the decider goes on; anything else is back on its list and runs when a worker comes.
func TestS3_12LastWorkerDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.embedded("--profile", "dev", "--claim-ttl", "3s")
	puppet := w.role("puppet-decider", "order")
	victim := w.hand("work")
	run := w.start("order", "o", nil, startOptions{DecisionTimeout: time.Hour})
	n, task := w.task(puppet)
	w.decide(puppet, n, task, schedule("A")+","+scheduleOnce("B"))
	victim.reports("A", "started")
	b := victim.takes("B").line.N
	victim.order(stranger.Line{N: b, Do: "begin"})
	if l := victim.answer(b); !strings.Contains(string(l.Permission), `"go":true`) {
		t.Fatalf("got %s, want go", l.Permission)
	}
	victim.Kill()

	n, task = w.task(puppet) // B has failed, with nobody there to ask
	poll.Until(t, time.Minute, "it is in the history", func() bool { return strings.Contains(notation(w.events(run)), "ActivityFailed B") })
	var failed *schemas.ActivityFailed
	interrupted := 0
	for _, e := range w.events(run) {
		switch a := e.Attributes.(type) {
		case *schemas.ActivityInterrupted:
			interrupted++
		case *schemas.ActivityFailed:
			failed = a
		}
	}
	if failed == nil || failed.Reason != schemas.ReasonInterrupted || interrupted == 0 {
		t.Fatalf("got %+v and %d interruptions; the history is\n%s", failed, interrupted, notation(w.events(run)))
	}
	w.decide(puppet, n, task, "")

	w.role("stranger-worker", "work") // A runs again
	n, task = w.task(puppet)
	w.decide(puppet, n, task, completeDecision)
	w.completes(run, `"done"`)
	if got := notation(w.events(run)); !strings.Contains(got, "ActivityStarted A attempt 2\nActivitySuccess A") || strings.Count(got, "ActivityInterrupted") != 2 {
		t.Errorf("got\n%s\nwant a second attempt of A", got)
	}
	w.verify()
}

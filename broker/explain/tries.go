package explain

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// Tries is what a run has failed at and tries again, as far as the state tells: why, stands in the
// history alone.
type Tries struct {
	decider    bool
	activities map[int64]*execution.Activity
}

// TriesOf finds what waits for its next attempt; nil if nothing does.
func TriesOf(s *execution.State, in *Situation) *Tries {
	if s.Closed() {
		return nil
	}
	t := &Tries{
		decider:    in.BackingUp && s.Decision.Failures > 0 && s.Decision.Refusal == "",
		activities: map[int64]*execution.Activity{},
	}
	for _, a := range s.OpenActivities() {
		if a.Started == 0 && a.Attempt > 1 && a.NotBefore > in.Now {
			t.activities[a.ScheduledID] = new(*a)
		}
	}
	if !t.decider && len(t.activities) == 0 {
		return nil
	}
	return t
}

// Last is the clause about the last of the failures among the events; "" if none of them is one
// that is tried again.
func (t *Tries) Last(events []schemas.Event) (clause string) {
	for _, e := range events {
		switch x := e.Attributes.(type) {
		case *schemas.DeciderFailed:
			if t.decider {
				clause = "; it failed with: " + brief(x.Reason)
			}
		case *schemas.DeciderTimedOut:
			if t.decider {
				clause = "; it did not answer in time"
			}
		case *schemas.ActivityRetryScheduled:
			if a := t.activities[x.ScheduledEventID]; a != nil && a.Attempt == x.Attempt+1 {
				clause = fmt.Sprintf("; attempt %d of activity %q failed with: %s%s",
					x.Attempt, a.Scheduled.ActivityID, brief(x.Cause), textOf(x.Details, x.Cause))
			}
		}
	}
	return clause
}

// mostOfReason bounds what a sentence tells of a failure, bytes. The history has more.
const mostOfReason = 500

// brief is so much of a reason as a sentence can take.
func brief(reason string) string {
	if len(reason) <= mostOfReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:mostOfReason], "") + "…"
}

// textOf is what details tell beyond the reason, if they are text: its first line.
func textOf(details schemas.Payload, reason string) string {
	text, _, _ := strings.Cut(string(details), "\n")
	if text == "" || json.Valid(details) || !utf8.ValidString(text) || strings.HasPrefix(text, reason) {
		return ""
	}
	return ": " + brief(text)
}

package decider

import (
	"fmt"
	"time"
)

// Outcome says how the handling of a decision task ended. Values are append-only.
type Outcome int

const (
	// OutcomeDecided: decisions, possibly none, were sent.
	OutcomeDecided Outcome = iota + 1
	// OutcomeFailed: Decide returned an error, and the broker was told.
	OutcomeFailed
	// OutcomePanicked: Decide panicked, and the broker was told.
	OutcomePanicked
	// OutcomeTimedOut: Decide exceeded Options.Timeout, and the broker was told.
	OutcomeTimedOut
	// OutcomeLate: the broker's deadline passed before there was an answer, so none was sent.
	OutcomeLate
	// OutcomeStopped: the worker stopped before there was an answer, and the broker was told.
	OutcomeStopped
	// OutcomeInvalid: the task could not be understood; the broker was told if the task's token
	// could be read.
	OutcomeInvalid
	// OutcomeUnsent: there was an answer that could not be sent.
	OutcomeUnsent
)

var outcomes = [...]string{
	"", "decided", "failed", "panicked", "timed out", "late", "stopped", "invalid", "unsent",
}

// String returns a word or two.
func (o Outcome) String() string {
	if o < 1 || int(o) >= len(outcomes) {
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
	return outcomes[o]
}

// Observation tells of one decision task that was handled.
type Observation struct {
	Type       string
	WorkflowID string
	Run        string
	StartedID  int64
	Attempt    int
	// Sticky: the task came on the worker's own subject.
	Sticky bool
	// Continues: see Task.Continues.
	Continues bool
	// Pages is how often history was read through the API.
	Pages int
	// Waited is the time between the arrival of the task and its begin, Took that until its answer.
	Waited, Took time.Duration
	Decisions    int
	Outcome      Outcome
	// Err is nil for OutcomeDecided.
	Err error
}

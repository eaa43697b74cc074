package execution

import (
	"fmt"
	"slices"
	"strings"

	"github.com/droverhq/drover/schemas"
)

// An attempt is interrupted when its worker is lost. An activity that may run twice gets another
// attempt, but not for ever: it may be what ends its workers. So interruptions have a limit of
// their own (ADR 0067). It is one of losses in a row: a heartbeat says that the attempt got
// somewhere, a failure that its worker lived to report it. A worker that stops as planned and gives
// the task back is no loss.

const (
	// mostFormer bounds the nonces of interrupted attempts that are known. One that is forgotten
	// asks as any other redelivery.
	mostFormer = 8
	// mostLosses bounds the losses that the failure tells of.
	mostLosses = 3
)

// interrupted notes an interruption.
func (a *Activity) interrupted(at schemas.Timestamp, e *schemas.ActivityInterrupted) {
	// Copies, since another copy of the state may have the slices of before.
	if a.Nonce != "" {
		a.Former = append(slices.Clone(a.Former[max(len(a.Former)-mostFormer+1, 0):]), a.Nonce)
	}
	a.Interrupted++
	if begins := e.Interruptions == 0 || e.Interruptions == 1 && !e.Returned; begins {
		a.Losses = nil
	}
	if a.Interruptions = e.Interruptions; e.Returned {
		return
	}
	a.Losses = append(slices.Clone(a.Losses[max(len(a.Losses)-mostLosses+1, 0):]),
		Loss{Attempt: e.Attempt, Worker: e.Identity, Began: a.StartedBase, Missed: at})
}

// silence tells whether an attempt has ended without a word of its worker.
func silence(cause string) bool {
	switch schemas.TimeoutType(cause) {
	case schemas.TimeoutStartToClose,
		schemas.TimeoutHeartbeat,
		schemas.TimeoutScheduleToStart,
		schemas.TimeoutScheduleToClose:
		return true
	}
	return false
}

// tries is how many attempts there were that a retry policy counts, the current one among them.
func (a *Activity) tries() int { return a.Attempt - a.Interrupted }

// mostInterruptions is how many there may be in a row; 0 for no limit.
func (a *Activity) mostInterruptions() int {
	switch n := a.Scheduled.MaximumInterruptions; {
	case n == 0:
		return schemas.DefaultMaximumInterruptions
	case n < 0:
		return 0
	default:
		return n
	}
}

// lastLosses tells of the latest interruptions, for the details of the failure.
func (a *Activity) lastLosses() schemas.Payload {
	var b strings.Builder
	fmt.Fprintf(&b,
		"its worker was lost %d times in a row, and maximumInterruptions is %d: the activity "+
			"may be what ends its workers", a.Interruptions, a.mostInterruptions())
	for i, l := range a.Losses {
		if i == 0 {
			b.WriteString("; the last ones:")
		} else {
			b.WriteString(",")
		}
		worker := "a worker without a name"
		if l.Worker != "" {
			worker = fmt.Sprintf("worker %q", l.Worker)
		}
		fmt.Fprintf(&b, " attempt %d of %s, begun %s, missed %s",
			l.Attempt, worker, l.Began, l.Missed)
	}
	return schemas.Text(b.String())
}

package actor

import (
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/watermark"
)

// Offer is a task that was offered to idle workers. When it is over Run and Activity are nil: it
// may stay in the queue for a while, and the input must not.
type Offer struct {
	ID         uint64
	Run        *Run
	Activity   *execution.Activity
	Attempt    int
	Completion *watermark.Completion
	Until      time.Time
	Stored     bool   // its message, after the start that its worker has announced
	Ahead      *Ahead // what the decision after it may rest on; nil if it went to whoever is idle
}

// Over tells whether the offer has ended.
func (f *Offer) Over() bool { return f.Run == nil }

// Wanted tells whether the attempt of an offer waits for an outcome. In a later run of the workflow
// id the same event is another activity.
func (f *Offer) Wanted() bool {
	a := f.Activity
	return f.Run.Live() && f.Run.State.Activities[a.ScheduledID] == a && a.Attempt == f.Attempt
}

// EndIsComing tells whether what has ended the offer is on its way to the history. Until it is
// there the offer holds the effects position, and the commit ends it: if the record is lost with
// its owner, the next one must repeat the task.
func (f *Offer) EndIsComing() bool { return !f.Wanted() && !f.Run.IsSettled() }

// TaskCopy is the message of a task that a worker has by an offer. Nobody acknowledges it, so it is
// deleted with the attempt: else it would stay until the lease of whoever holds it is over. An
// owner that forgets the run forgets it as well, and then that happens.
type TaskCopy struct {
	Run, List string
	Scheduled int64
	Attempt   int
	Seq       uint64
}

// Ahead is what is remembered of an offer to the worker that decides as well: it may answer with
// the outcome and the decision after it.
type Ahead struct {
	Worker string
	Token  string
	Last   int64 // event of the run
}

package partition

import (
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/watermark"
)

// offer is a task that was offered. When it is over run and activity are nil: it may stay in the
// queue for a while, and the input must not.
type offer struct {
	id         uint64
	run        *run
	activity   *execution.Activity
	attempt    int
	completion *watermark.Completion
	until      time.Time
	stored     bool   // its message, after the start that its worker has announced
	ahead      *ahead // what the decision after it may rest on; nil if it went to whoever is idle
}

func (f *offer) over() bool { return f.run == nil }

// wanted tells whether the attempt of an offer waits for an outcome. In a later run of the workflow
// id the same event is another activity.
func (f *offer) wanted() bool {
	a := f.activity
	return f.run.live() && f.run.state.Activities[a.ScheduledID] == a && a.Attempt == f.attempt
}

// endIsComing tells whether what has ended the offer is on its way to the history. Until it is
// there the offer holds the effects position, and offersMet ends it: if the record is lost with its
// owner, the next one must repeat the task.
func (f *offer) endIsComing() bool { return !f.wanted() && !f.run.isSettled() }

// taskCopy is the message of a task that a worker has by an offer. Nobody acknowledges it, so it is
// deleted with the attempt: else it would stay until the lease of whoever holds it is over. An
// owner that forgets the run forgets it as well, and then that happens.
type taskCopy struct {
	run, list string
	scheduled int64
	attempt   int
	seq       uint64
}

// ahead is what is remembered of such an offer.
type ahead struct {
	worker string
	token  string
	last   int64 // event of the run
}

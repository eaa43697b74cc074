package stats

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/internal/tally"
	"github.com/droverhq/drover/schemas"
)

// Stats are those of one namespace. The zero value is ready to use.
type Stats struct {
	// Types counts runs and decisions by the type of workflow.
	Types tally.Vec[string, Type]
	// Activities counts by task list and type.
	Activities tally.Vec[ListType, Activity]
	// Signals counts those that came into histories, SignalsDead those that became dead letters.
	Signals, SignalsDead atomic.Int64
	// Dead counts dead letters that owners wrote, by reason.
	Dead tally.Vec[string, atomic.Int64]
	// LockWait is how long runs waited for locks that they got.
	LockWait tally.Histogram
	// Commits counts records.
	Commits Commits
	// Requests counts answers by verb and code, Answers how long they took.
	Requests tally.Vec[VerbCode, atomic.Int64]
	Answers  tally.Vec[string, tally.Histogram]
	// Takeovers counts by why they were, TakeOver how long they took.
	Takeovers [3]atomic.Int64
	TakeOver  tally.Histogram
	// Alarms counts what timer workers do.
	Alarms Alarms
	// SlotLate is how long after their times the slots of schedules had started.
	SlotLate tally.Histogram

	open  Requests
	mu    sync.Mutex
	owned map[int]*Partition
}

// ListType is a task list and an activity type.
type ListType struct{ List, Type string }

// VerbCode is a verb of the API and the code of its answer, "ok" without an error.
type VerbCode struct{ Verb, Code string }

// Type is what is counted of a type of workflow.
type Type struct {
	Started atomic.Int64
	Closed  [len(Statuses)]atomic.Int64
	Took    tally.Histogram // from start to close
	// Decisions are those that ended, by outcome; Wait is how long they waited for a decider, and
	// Deciding how long that took.
	Decisions      [len(DecisionOutcomes)]atomic.Int64
	Wait, Deciding tally.Histogram
}

// Statuses are the ways in which a run closes, in the order of [Type].Closed.
var Statuses = [...]schemas.Status{
	schemas.StatusCompleted, schemas.StatusFailed, schemas.StatusCanceled,
	schemas.StatusTerminated, schemas.StatusTimedOut, schemas.StatusContinuedAsNew,
}

// DecisionOutcomes are the ends of decision tasks, in the order of [Type].Decisions. One that
// nobody took in time is untaken.
var DecisionOutcomes = [...]string{"completed", "failed", "timedOut", "untaken"}

// Activity is what is counted of an activity type on a task list.
type Activity struct {
	Outcomes [len(ActivityOutcomes)]atomic.Int64
	// Wait is how long an attempt waited for a worker, and Took how long the one that ended the
	// activity ran.
	Wait, Took           tally.Histogram
	Retries, Interrupted atomic.Int64
}

// ActivityOutcomes are the ends of activities, in the order of [Activity].Outcomes. One that no
// worker took in time is untaken.
var ActivityOutcomes = [...]string{"completed", "failed", "canceled", "timedOut", "untaken"}

// Commits counts the records that were written to histories.
type Commits struct {
	Took                   tally.Histogram // from sending to acknowledgement
	Records, Events, Bytes atomic.Int64
	Refused                [len(Refusals)]atomic.Int64
}

// Refusals are why records were not stored, in the order of [Commits].Refused.
var Refusals = [...]string{"conflict", "full", "other"}

// Refusals as indices.
const (
	RefusedConflict = iota
	RefusedFull
	RefusedOther
)

// Takeover says why a partition has a new owner.
type Takeover int

// The reasons. Their names are in [TakeoverNames].
const (
	TakenHanded Takeover = iota // the owner before has handed it over
	TakenLost                   // the owner before has not: it has crashed, or a write was refused
	TakenNew                    // nobody had it before
)

// TakeoverNames are the reasons in words.
var TakeoverNames = [...]string{"handed-over", "lost", "new"}

// Took counts a take-over.
func (s *Stats) Took(why Takeover, took time.Duration) {
	if s != nil {
		s.Takeovers[why].Add(1)
		s.TakeOver.Observe(took)
	}
}

// Buried counts a dead letter.
func (s *Stats) Buried(reason string, signal bool) {
	if s == nil {
		return
	}
	s.Dead.Of(reason).Add(1)
	if signal {
		s.SignalsDead.Add(1)
	}
}

// Committed counts a record that was acknowledged.
func (s *Stats) Committed(took time.Duration, events, bytes int) {
	if s == nil {
		return
	}
	c := &s.Commits
	c.Took.Observe(took)
	c.Records.Add(1)
	c.Events.Add(int64(events))
	c.Bytes.Add(int64(bytes))
}

// RecordRefused counts a record that was not stored; why is an index of [Refusals].
func (s *Stats) RecordRefused(why int) {
	if s != nil {
		s.Commits.Refused[why].Add(1)
	}
}

// Fired counts a slot of a schedule that was started, so long after its time.
func (s *Stats) Fired(late time.Duration) {
	if s != nil {
		s.SlotLate.Observe(late)
	}
}

// Overflow is how often something was counted under "other".
func (s *Stats) Overflow() int64 {
	return s.Types.Overflow() + s.Activities.Overflow() + s.Dead.Overflow() +
		s.Requests.Overflow() + s.Answers.Overflow()
}

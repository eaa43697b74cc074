package decider

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/decider/internal/history"
	"github.com/droverhq/drover/schemas"
)

// Task is one decision to be made: which run, what is new, and what the decider left for itself
// last time.
//
// A Task belongs to the goroutine that Decide was called in, and ends with it. Events and payloads
// are shared with the worker's cache: read them, never change them.
type Task struct {
	task    schemas.DecisionTask
	context schemas.Payload
	// payloads is nil for a task without a worker.
	payloads *payloads.Client
	known    history.Known
	pool     *pool // nil for a task without a worker
	// inJSON: the task came in JSON, and so the reply goes.
	inJSON bool
	// allOrNothing and again are said by the reply.
	allOrNothing, again bool
}

// NewTask returns a task without a worker: for tests of deciders, and for deciding over a stored
// history. Its window must be complete, and whoever asks such a task for events before its window
// gets [ErrHistory]. Without a StartedAt it has the time of its DeciderStarted.
func NewTask(t schemas.DecisionTask) (*Task, error) {
	task := &Task{task: t}
	if err := task.check(); err != nil {
		return nil, err
	}
	if history.Lacking(&task.task) {
		return nil, fmt.Errorf(
			"%w: the window ends at event %d before startedId %d: give the task all of it",
			ErrInvalidTask, history.WindowEnd(&task.task), t.StartedID)
	}
	if n := len(task.task.Events); task.task.StartedAt == 0 && n > 0 &&
		task.task.Events[n-1].ID == t.StartedID {
		task.task.StartedAt = task.task.Events[n-1].Time
	}
	return task, nil
}

// check judges what was received, and leaves out of the window what does not belong there.
func (t *Task) check() error {
	dt := &t.task
	switch {
	case dt.WorkflowID == "" || dt.Run == "":
		return fmt.Errorf("%w: workflowId is %q and run is %q: name both",
			ErrInvalidTask, dt.WorkflowID, dt.Run)
	case dt.Replay != nil: // no decision, and no window
		dt.Events, dt.PreviousStartedID, dt.StartedID = nil, 0, 0
	case dt.StartedID < 1 || dt.PreviousStartedID < 0 || dt.PreviousStartedID >= dt.StartedID:
		return fmt.Errorf(
			"%w: previousStartedId is %d and startedId is %d: want 0 ≤ previousStartedId < startedId",
			ErrInvalidTask, dt.PreviousStartedID, dt.StartedID)
	}
	dt.Events = history.Contiguous(dt.Events, dt.PreviousStartedID, dt.StartedID)
	t.context = dt.Context
	return nil
}

// Namespace returns the tenant of the run.
func (t *Task) Namespace() string { return t.task.Namespace }

// Execution returns the run that is decided upon.
func (t *Task) Execution() schemas.Execution {
	return schemas.Execution{WorkflowID: t.task.WorkflowID, Run: t.task.Run}
}

// Type returns the workflow type.
func (t *Task) Type() string { return t.task.Type }

// TypeVersion returns the version of the workflow type that the run was started with; often empty.
func (t *Task) TypeVersion() string { return t.task.TypeVersion }

// Attempt is 1 for the first try of a decision, and grows with each failure or timeout of a decider
// in a row.
func (t *Task) Attempt() int { return t.task.Attempt }

// PreviousStartedID is the DeciderStarted of the last completed decision: the window begins after
// it. 0 if there was none.
func (t *Task) PreviousStartedID() int64 { return t.task.PreviousStartedID }

// StartedID is the DeciderStarted of this decision: no later event is visible.
func (t *Task) StartedID() int64 { return t.task.StartedID }

// StartedAt is the time of the DeciderStarted of this decision, as the history has it or will have
// it, also if [Task.Events] lacks the event. Timers that count from it do not become longer by what
// the decision waited for. The zero time for a question about a replay.
func (t *Task) StartedAt() time.Time { return t.task.StartedAt.Time() }

// Deadline is when the broker stops waiting, by its clock; the zero time if it named none. The
// context of Decide ends by then.
func (t *Task) Deadline() time.Time { return t.task.Deadline.Time() }

// Events returns the window: what is new since the last completed decision, up to this task's
// DeciderStarted. That last event may be missing, or lack the identity, while the broker has not
// written it yet.
func (t *Task) Events() []schemas.Event { return t.task.Events }

// Context returns what the previous decision left by SetContext, or what this one has set since.
// One that was large comes back as a reference: read it by [Task.Payload].
func (t *Task) Context() schemas.Payload { return t.context }

// SetContext leaves p to the next decision of the run; nil clears it. What is not set stays as it
// is: the answer carries on the context that the task came with. An error takes back what was set.
// See [Task.Payload] about large ones.
func (t *Task) SetContext(p schemas.Payload) { t.context = p }

// AllOrNothing tells whether [Task.SetAllOrNothing] was called with true.
func (t *Task) AllOrNothing() bool { return t.allOrNothing }

// SetAllOrNothing says what becomes of an answer that closes the run if something has come in that
// the task does not show: with true nothing of it stands, neither its decisions nor what was set by
// [Task.SetContext], and the decider is asked again at once. Otherwise all stands but the close. It
// is for deciders that have done for good when they close the run. After ten times in a row the run
// is closed all the same; ContinueAsNew waits three times for signals that come all the time, and
// then leaves them to the next run.
func (t *Task) SetAllOrNothing(whole bool) { t.allOrNothing = whole }

// Again tells whether [Task.SetAgain] was called with true.
func (t *Task) Again() bool { return t.again }

// SetAgain asks for another decision directly after this one, even if nothing happens. Its task
// comes when what this answer decides is stored, so that who goes on may rely on it. A decider that
// asks each time goes on until the history is full: see [Task.SuggestContinueAsNew].
func (t *Task) SetAgain(again bool) { t.again = again }

// Ahead tells whether the decision is made before what it decides upon is stored, together with the
// outcome of an activity; it may then be dropped, and made anew. A decider that does something else
// than decide leaves that to a decision that is not ahead: see [Task.SetAgain].
func (t *Task) Ahead() bool { return t.task.Ahead != nil }

// Rest calls do, which waits for something else than a processor, and lets another task have the
// place of this one among Options.Concurrency meanwhile. The deadline stands.
func (t *Task) Rest(do func()) {
	if t.pool == nil {
		do()
		return
	}
	t.pool.rest(do)
}

// Base names the last committed answer of the run, or is nil if there is none yet.
func (t *Task) Base() *schemas.DecisionBase { return t.task.Base }

// Continues tells whether the last committed answer of the run is the one that this worker gave at
// PreviousStartedID. Only then is what a decider has kept in memory since that answer still true
// (P-11). It may be false for a run that the worker has forgotten.
//
// A worker may have answered at PreviousStartedID more than once: ahead of the history, which then
// went another way, and again in the ordinary way. What is kept in memory is true only if it was
// left by the task that [Task.Continued] names.
func (t *Task) Continues() bool {
	_, ok := t.known.Continued()
	return ok
}

// Token names this task. No other has the same, even if its StartedID has.
func (t *Task) Token() string { return t.task.Token }

// Continued returns the Token of the task whose answer is the last committed one, if it was this
// worker's: see [Task.Continues]. Otherwise it is empty.
func (t *Task) Continued() string {
	token, _ := t.known.Continued()
	return token
}

// History yields the events of the run from 1 to StartedID. What the task does not hold is read
// through the API, page by page as the loop goes on, and once only. After an error, which wraps
// [ErrHistory] or tells why ctx ended, nothing follows. Of a question about a replay it is the
// whole history of the run that has ended.
func (t *Task) History(ctx context.Context) iter.Seq2[schemas.Event, error] {
	return func(yield func(schemas.Event, error) bool) {
		t.known.Each(ctx, &t.task, yield)
	}
}

// View folds the whole history. Errors as of [Task.History].
func (t *Task) View(ctx context.Context) (*View, error) {
	v := NewView()
	for e, err := range t.History(ctx) {
		if err != nil {
			return nil, err
		}
		v.Add(e)
	}
	return v, nil
}

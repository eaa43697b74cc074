package machine

import (
	"time"

	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/value"
)

// Do says what an action is.
type Do = run.Do

// The actions. Those with an answer are marked with the kind of Input that answers them.
const (
	Schedule     Do = "schedule"     // an activity: Result or Failed
	CancelWork   Do = "cancel"       // the activity of that ID
	StartChild   Do = "child"        // a run: Result or Failed
	CancelChild  Do = "cancel-child" // the child of that ID
	StartTimer   Do = "timer"        // Fired or Failed
	CancelTimer  Do = "cancel-timer" // the timer of that ID
	Acquire      Do = "lock"         // Granted or Failed
	ReadState    Do = "read"         // Result, with a nil value if there is none
	WriteState   Do = "write"        // Result or Refused
	ClearState   Do = "clear"        // Result
	SendSignal   Do = "signal"       // Failed, if it reached nobody
	MarkPoint    Do = "replay-point" // Name is the ref of the step
	ResetPoints  Do = "replay-reset" // all points are forgotten
	SetRetention Do = "retention"    // Text and Hash
	SetLabels    Do = "attributes"   // Labels; an empty value removes
	LogLine      Do = "log"          // Level, Category and Text
	Complete     Do = "complete"     // the run has ended with Value
	Fail         Do = "fail"         // the run has failed with Failure
	// the run has ended because it was asked to, or by its timeout
	Cancel Do = "cancel-itself"
)

// Action is something that is to be done for a run. Which fields count goes by Do.
type Action struct {
	Do   Do
	ID   string // unique in the run; what answers come under
	Name string // of an activity or workflow type, lock, state key, signal or replay point
	// List is the task list of an activity.
	List string
	// Value is the input of an activity, what is written, sent, or the result of the run. Nil is
	// none.
	Value any
	// Require is a predicate without expressions. Nil requires nothing.
	Require any
	Scope   string
	Limit   int
	Delay   time.Duration
	// Idempotent activities may run again when their worker is lost.
	Idempotent bool
	// Child is what a child begins with; its Name is empty if it runs a part of this flow.
	Child *Begin
	// Run is the workflow id that a signal goes to, or that a child is to have.
	Run      string
	Only     bool
	Text     string
	Hash     string
	Level    string
	Category string
	Labels   map[string]string
	Failure  *run.Failure
	// Reduced are the variables that the run hands back to a loop with reducing, beside its result.
	Reduced map[string]any
}

// size is about what the action takes in a message.
func (a *Action) size() int {
	n := value.Size(a.Value) + len(a.Text) + len(a.Category)
	if c := a.Child; c != nil {
		n += value.Size(any(c.Input)) + value.Size(any(c.Vars))
		if c.Replay != nil {
			n += len(c.Replay.State)
		}
	}
	return n
}

// Kind says what has come in.
type Kind string

// The kinds of inputs.
const (
	Result  Kind = "result"  // an activity, a child or a request on state has succeeded
	Failed  Kind = "failed"  // one has not
	Fired   Kind = "fired"   // a timer
	Granted Kind = "granted" // the lock
	Broken  Kind = "broken"  // the lock Name was taken away; that of the run if there is none
	Refused Kind = "refused" // a write's requirement does not hold
	Signal  Kind = "signal"  // Name and Value
	Stop    Kind = "stop"    // somebody asks the run to end
)

// Input is what has come in for a run.
type Input struct {
	Kind    Kind
	ID      string // of the action that is answered
	Name    string // of a signal, or of a lock
	Value   any
	Failure *run.Failure
	Reduced map[string]any // of a child in a loop with reducing
	State   []byte         // of a child that failed: its encoded state, if it can be resumed
}

// Begin is what a run begins with.
type Begin struct {
	// Program is the key of the program in its flow; empty for the root.
	Program string
	// Input is what the caller gives.
	Input map[string]any
	// Vars are the first variables: target, target_index and the like.
	Vars map[string]any
	// Reducing are names of variables that the run hands back.
	Reducing []string
	// IdempotentAll is inherited from the definitions around.
	IdempotentAll bool
	// ID is the workflow id and Task the run id. Those who start a child leave them empty.
	ID, Task string
	// Mode says what began the run, as in [schemas.StartMode]. Those who start a child leave it
	// empty.
	Mode string
	// Replay is set if the run repeats another that has ended.
	Replay *Origin
	// Trace is told what the steps do. Nil is nobody. Those who start a child leave it empty.
	Trace run.Trace
}

// Origin is where a replay begins.
type Origin struct {
	State []byte // of the other run, as Encode wrote it
	From  string // start, last, end, or the id or ref of a step
	Force bool   // without the checks of idempotence and replay points
}

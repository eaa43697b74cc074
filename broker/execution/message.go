package execution

import "github.com/droverhq/drover/schemas"

// Message is anything that happens to an execution.
type Message interface{ message() }

// Start begins a run. It is the first message of every run and of no other.
type Start struct {
	Request *schemas.StartRequest
	// Received are the ids of signals and cancel requests that other workflows have sent to the run
	// before it.
	Received []string
	// Retention and ParentRetention are those of the run that this one replays, if it goes on from
	// there.
	Retention, ParentRetention *schemas.RetentionPolicy
}

// Signal is word from outside. If another workflow sends it, External says which; then the sender
// gets an answer.
type Signal struct {
	Name      string
	Input     schemas.Payload
	RequestID string
	External  *schemas.ExternalSignal
	// Bad says why the input cannot be shown to a decider; empty if it can.
	Bad string
}

// Copied is a signal that the run before it in the chain had not read. All of them follow the start
// at once, in their order.
type Copied struct {
	EventID int64 // in that run
	Signal  *schemas.Signal
}

// Cancel asks for the run's end; the decider decides. Terminate ends it.
type (
	Cancel    struct{ Request *schemas.ExecutionRequest }
	Terminate struct{ Request *schemas.ExecutionRequest }
)

// Child is what the owner of a child reports.
type Child struct{ Report *schemas.ChildReport }

// External is the answer to a signal or cancel request that this run has sent to another workflow.
type External struct{ Answer *schemas.ExternalAnswer }

// Report is what an activity worker reported or asked. List is the one that the worker speaks for,
// by the subject that it may publish to; empty if that is not known. Of is what the token of the
// report names, if it has been parsed already.
type Report struct {
	Report *schemas.Report
	List   string
	Of     Attempt
	// Bad says why the result or the details cannot be shown to a decider; empty if they can.
	Bad string
}

func (m Report) of() (run string, scheduledID int64, attempt int, err error) {
	if m.Of.Run != "" {
		return m.Of.Run, m.Of.ScheduledID, m.Of.Attempt, nil
	}
	return ParseToken(m.Report.Token)
}

// Attempt names an attempt of an activity.
type Attempt struct {
	Run         string
	ScheduledID int64
	Attempt     int
}

// Gone says that the worker of an attempt that came as an offer does not answer any more.
type Gone Attempt

// AlarmFired says that an alarm rang: everything whose time has come happens, except what was set
// by the event Uncommitted or a later one: those are not in the history yet. 0 says that all are.
type AlarmFired struct{ Uncommitted int64 }

// Taken says that a decider took the decision task.
type Taken struct{ Identity string }

// Reply is a decider's answer; Digest identifies its bytes.
type Reply struct {
	Reply  *schemas.DecisionReply
	Digest string
}

// Refuse says that a decider's answer could not be used: it was no reply, or it did not fit.
type Refuse struct {
	Cause    schemas.Cause
	Reason   string
	Details  string
	Identity string
}

// Pause stops asking the decider.
type Pause struct{ Request *schemas.ExecutionRequest }

// Resume undoes a pause.
type Resume struct{ Request *schemas.ExecutionRequest }

// Hold keeps the run from being asked to continue as new, Release undoes that.
type (
	Hold    struct{ Request *schemas.ExecutionRequest }
	Release struct{ Request *schemas.ExecutionRequest }
)

// Recycle asks the run to continue as new since its node is about to be recycled, if this is a
// moment for that.
type Recycle struct{}

// Granted says that the run has the lock that it asked for with an event. Of a place with an
// ancestor's run it is the ancestor that holds it.
type Granted struct {
	Key   string
	Asked Asked
	Place schemas.LockPlace
}

// Denied says that the run does not get the lock, and does not stand in line.
type Denied struct {
	Key     string
	Asked   Asked
	Cause   schemas.Cause
	Details string
	// Value is what the key lock-NAME shows to a run that has tried to take the lock by it.
	Value schemas.Payload
}

// Answered says what became of a request for a state key. Without a cause it was carried out: Value
// is what was read, and Revision that of the key, 0 if it does not exist.
type Answered struct {
	Asked    Asked
	Cause    schemas.Cause
	Details  string
	Value    schemas.Payload
	Revision uint64
}

// Lost says that others hold the lock that the run holds by its history.
type Lost struct {
	Key    string
	Asked  Asked
	Cause  schemas.Cause
	Reason string
}

// BreakLock takes a lock from the run.
type BreakLock struct{ Request *schemas.ExecutionRequest }

// Asked names a LockRequested of the run's chain.
type Asked struct {
	Run     string
	EventID int64
}

func (Start) message()      {}
func (Signal) message()     {}
func (Copied) message()     {}
func (Cancel) message()     {}
func (Terminate) message()  {}
func (Child) message()      {}
func (External) message()   {}
func (Report) message()     {}
func (Gone) message()       {}
func (AlarmFired) message() {}
func (Taken) message()      {}
func (Reply) message()      {}
func (Refuse) message()     {}
func (Pause) message()      {}
func (Resume) message()     {}
func (Hold) message()       {}
func (Release) message()    {}
func (Recycle) message()    {}
func (Granted) message()    {}
func (Denied) message()     {}
func (Lost) message()       {}
func (BreakLock) message()  {}
func (Answered) message()   {}

// Effect is something to do once the events that came with it are in the history.
//
// A decision task and the alarm are no effects of a step: what is wanted of them can be read off
// the state at any time ([State.WantsDecider], [State.NextDue]).
type Effect interface{ effect() }

// Dispatch offers an activity task to idle workers or puts it on its list; with Store it must be on
// the list.
type Dispatch struct {
	ScheduledID int64
	Store       bool
}

// Inquire asks a worker whether it is still at an attempt that came as an offer. If not, [Gone]
// happens.
type Inquire struct {
	ScheduledID int64
	Attempt     int
	Worker      string
	Token       string
}

// Permit answers a worker's question.
type Permit struct {
	To         string
	Permission schemas.Permission
}

// Dead parks the message that was just handled. Reason is one of the words below, Details a
// sentence.
type Dead struct {
	Reason  string
	Details string
}

// Closed says that the run ended in this step: its parent is told, or its continuation begins.
type Closed struct{}

// StartChild asks for the child of a ChildScheduled.
type StartChild struct{ ScheduledID int64 }

// Request sends the signal or the cancel request of a SignalExternalScheduled or
// CancelExternalScheduled.
type Request struct{ ScheduledID int64 }

// Answer tells another workflow that its signal or cancel request has arrived, or why not.
type Answer struct {
	To     schemas.Execution
	Answer schemas.ExternalAnswer
}

// EndChild applies the child policy of a run that was ended by force to one of its children.
type EndChild struct {
	ScheduledID int64
	Child       schemas.Execution
	Policy      schemas.ChildPolicy
}

// CancelRunning tells the worker of a running activity at once that it is not wanted any more. It
// is a hint.
type CancelRunning struct {
	ScheduledID int64
	Worker      string
	Token       string
	Reason      string
	Gone        bool // nobody waits for it any more
}

// EnterLock asks for the lock that a LockRequested of the run's chain names, or makes sure that it
// is still held. By is the event of this run that the effect stems from.
type EnterLock struct {
	Key   string
	Asked Asked
	By    int64
}

// LeaveLock gives the place back that a LockRequested of the run's chain has got.
type LeaveLock struct {
	Lock, Scope string
	Asked       Asked
}

// AskState carries out the request of a StateRequested.
type AskState struct{ ScheduledID int64 }

func (AskState) effect()      {}
func (EnterLock) effect()     {}
func (LeaveLock) effect()     {}
func (Inquire) effect()       {}
func (Dispatch) effect()      {}
func (Permit) effect()        {}
func (Dead) effect()          {}
func (Closed) effect()        {}
func (StartChild) effect()    {}
func (Request) effect()       {}
func (Answer) effect()        {}
func (EndChild) effect()      {}
func (CancelRunning) effect() {}

// The reasons of dead letters that the core gives.
const (
	DeadClosedActivity = "closed-activity"
	DeadStaleToken     = "stale-token"
	DeadClosedWorkflow = "closed-workflow"
	DeadLateDecision   = "late-decision"
	DeadInvalid        = "invalid"
	DeadForeignList    = "foreign-list"
)

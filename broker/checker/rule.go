package checker

import (
	"fmt"
	"strings"
)

// Violation says which rule a history breaks, and where.
type Violation struct {
	// Rule is one of the names of this package, such as [RuleIDs].
	Rule       string `json:"rule"`
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run"`
	// EventID is the event at fault. For a rule about records it is the first event of the record,
	// for one about the end of a history the event that something should have followed. 0 if there
	// is none.
	EventID int64 `json:"eventId,omitempty"`
	// Detail says what was found and what was wanted, in one sentence.
	Detail string `json:"detail"`
}

// String returns the violation as one line.
func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: workflow %q run %s", v.Rule, v.WorkflowID, v.Run)
	if v.EventID != 0 {
		fmt.Fprintf(&b, " event %d", v.EventID)
	}
	b.WriteString(": " + v.Detail)
	return b.String()
}

// Rules about every event. The names of rules are stable: reports and alerts are keyed by them.
const (
	// RuleIDs: the ids of events are 1, 2, 3 … without gap.
	RuleIDs = "ids"
	// RuleFirst: event 1 is WorkflowStarted, names the run, and is the only one of its kind; event
	// 2 is DeciderScheduled (S1-1). A history without events breaks it too.
	RuleFirst = "first"
	// RuleClosed: nothing follows a closing event (S1-2, S1-3, S1-4).
	RuleClosed = "closed"
	// RuleTime: the times of events never run backwards.
	RuleTime = "time"
	// RuleEvent: an event says something: its attributes are there, and its timeout type is one
	// that it can have.
	RuleEvent = "event"
	// RuleOnce: what a request id or the event of another run caused is in the history once (P-5,
	// P-6), as far as a chain remembers: its latest 1,000 signals and 100 requests of operators,
	// and all of the last ten minutes.
	RuleOnce = "once"
)

// Rules about the decider.
const (
	// RuleDeciderScheduled: at most one DeciderScheduled is pending, and something woke the decider
	// since its last start, or it has asked for another decision (S1-5, S1-35). Read literally the
	// design would allow a second one after a start-to-close timeout; S1-35 does not.
	RuleDeciderScheduled = "decider-scheduled"
	// RuleDeciderStarted: a DeciderStarted takes the pending DeciderScheduled, names it, and waits
	// until the decider before it is completed, timed out or failed (S1-35, S1-36).
	RuleDeciderStarted = "decider-started"
	// RuleDeciderClosed: DeciderCompleted, DeciderFailed and a start-to-close DeciderTimedOut name
	// the running decider; a schedule-to-start DeciderTimedOut names the pending DeciderScheduled
	// and no start (S1-8).
	RuleDeciderClosed = "decider-closed"
	// RuleDecided: what a decider decided, and the refusals of it, stand directly after their
	// DeciderCompleted, in the same record; between them stands nothing but the immediate
	// cancellation of activities that had not started (S1-7, S1-27).
	RuleDecided = "decided"
	// RuleRefusal: a refusal is true: the id that it says is in use is in use, the one that it says
	// is unknown is not open.
	RuleRefusal = "refusal"
	// RuleUnhandled: a decision closes the run only if no waking event came between its
	// DeciderStarted and its DeciderCompleted, and is refused as UNHANDLED_DECISION only if one
	// came after the DeciderStarted. Waking events that the decision itself caused may be judged
	// either way. Signals may stand there if the run continues as new (P-4). Anything may if nothing
	// of a reply stood ten times in a row for that reason, and no more often. The close says how
	// many signals are unread.
	RuleUnhandled = "unhandled"
	// RuleWake: after every waking event there is a DeciderStarted that sees it, or a
	// DeciderScheduled is pending, unless the run is paused or closed (S1-34, S1-36, S1-42). One is
	// pending too directly after what a reply decided that asks for another decision.
	RuleWake = "wake"
	// RulePaused: between WorkflowPaused and WorkflowResumed no decider is scheduled or started;
	// the two alternate. The run is paused directly after its decider has failed for the third time
	// in a row as NON_DETERMINISTIC.
	RulePaused = "paused"
)

// Rules about what a decider asked for.
const (
	// RuleActivity: an activity is scheduled before it is started, started before its outcome,
	// closed at most once, and every event names the right ones; ActivityScheduledTimeout closes
	// only one that never started.
	RuleActivity = "activity"
	// RuleActivityID: no two open activities have one id.
	RuleActivityID = "activity-id"
	// RuleAttempt: attempts are 1, 2, 3 …; another one starts only after ActivityInterrupted or
	// ActivityRetryScheduled, which the retry policy must allow, and an activity that is not
	// idempotent never restarts because it was interrupted.
	RuleAttempt = "attempt"
	// RuleTimer: a timer expires or is canceled while it is open, at most once (S1-19, S1-47).
	RuleTimer = "timer"
	// RuleTimerID: no two open timers have one id (S1-17).
	RuleTimerID = "timer-id"
	// RuleEarly: no timer expires and nothing times out before its time, by the times of the events
	// and by the server's times of their records (P-15); nothing times out that has no limit, and
	// no decision that cannot be taken.
	RuleEarly = "early"
	// RuleChild: a child is scheduled before it is started, started before it is closed, and
	// refused or closed at most once (S1-24); no run id is asked for twice.
	RuleChild = "child"
	// RuleExternal: a signal or cancel request to another workflow gets at most one answer.
	RuleExternal = "external"
	// RuleLock: a lock is acquired at most once per request and only while the request stands;
	// fences never fall, no two workflows get the same, and there are never more holders than the
	// limit says; at its end a run has let go of all (A0-5).
	RuleLock = "lock"
	// RuleState: a request on a state key gets at most one answer, of its own kind.
	RuleState = "state"
)

// Rules about records and about the runs of one workflow id.
const (
	// RuleRecord: a record names its run and begins after the last event of the one before it; the
	// first one begins the run.
	RuleRecord = "record"
	// RuleChain: each record holds the SHA-256 of the body of the run's record before it, the first
	// one none.
	RuleChain = "chain"
	// RuleFence: the fence of the writer never falls.
	RuleFence = "fence"
	// RulePosition: the inbox and signal positions of a run never go back.
	RulePosition = "position"
	// RuleSnapshot: the sequence of the latest snapshot never falls.
	RuleSnapshot = "snapshot"
	// RuleServerTime: the server's times of a run's records never run backwards.
	RuleServerTime = "server-time"
	// RuleOneRun: a workflow id has at most one open run.
	RuleOneRun = "one-run"
	// RuleInherit: the first record of a run has positions not before those of the run before it
	// (P-3); one that continues another knows the latest signals of its chain, and cancel requests
	// of other workflows (P-6), and has the locks that it held.
	RuleInherit = "inherit"
	// RuleContinuation: a run that continued as new is followed by the run that it names, which
	// names it in turn (P-4), is of the same type, has the input it was given, and is the same link
	// of the same chain to the same parent. It begins with copies of the signals that the run
	// before it had not read. Origin and copy count as one.
	RuleContinuation = "continuation"
	// RuleReplay: a run that repeats another names one of its workflow id that has ended, did not
	// continue, was to be kept, and left something to run; it is of the same type and version, and
	// is neither a child nor a link of a chain.
	RuleReplay = "replay"
)

// Rules between workflows.
const (
	// RuleParent: a child was asked for by the event that it names, as it is; the parent reports
	// its start only if it began, its refusal only if it never did, and its end as it was (S1-24).
	RuleParent = "parent"
	// RuleChildPolicy: the policy of a run that was ended by force is carried out, and no other one
	// is.
	RuleChildPolicy = "child-policy"
	// RuleDelivery: a signal or cancel request of another workflow was sent by the event that it
	// names, as it is, and is in one history once; it is answered as delivered only if it was
	// (P-6).
	RuleDelivery = "delivery"
	// RuleUnfinished: once all is at rest, an open run has an answer to every child, signal and
	// cancel request, and knows the end of every child that has one.
	RuleUnfinished = "unfinished"
)

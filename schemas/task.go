package schemas

import (
	"bytes"
	"encoding/json"
	"time"
)

// DecisionTask is what a decider is asked. The window is the events with PreviousStartedID < id ≤
// StartedID; if More is set the window did not fit and the rest is read through the history API;
// beside a large context it may have no event at all.
type DecisionTask struct {
	V                 int       `json:"v,omitempty"`
	Namespace         string    `json:"namespace"`
	WorkflowID        string    `json:"workflowId"`
	Run               string    `json:"run"`
	Type              string    `json:"type"`
	TypeVersion       string    `json:"typeVersion,omitempty"`
	PreviousStartedID int64     `json:"previousStartedId"`
	StartedID         int64     `json:"startedId"`
	Token             string    `json:"token"`
	Events            []Event   `json:"events"`
	More              bool      `json:"more,omitempty"`
	Context           Payload   `json:"context,omitempty"`
	Attempt           int       `json:"attempt"`
	Deadline          Timestamp `json:"deadline,omitempty"`
	// StartedAt is the time of the DeciderStarted, also if that is not among the events. An
	// [AheadTask] has none: there its worker knows the time.
	StartedAt Timestamp `json:"startedAt,omitempty"`
	// SuggestContinueAsNew: the run is to continue as new when that fits.
	SuggestContinueAsNew bool `json:"suggestContinueAsNew,omitempty"`
	// ContinueReasons say why: age, events and recycle, as in [ContinuationSuggested]; history if
	// the history nears the limit of events.
	ContinueReasons []string `json:"continueReasons,omitempty"`
	// StartMode says what began the run.
	StartMode StartMode `json:"startMode,omitempty"`
	// EventsLeft is after how many more events the run is terminated, if it does not continue as
	// new before. Left out below three quarters of the limit of events.
	EventsLeft int64 `json:"eventsLeft,omitempty"`
	// Base identifies the last reply that was committed: a decider that keeps a cache discards it
	// on a mismatch.
	Base *DecisionBase `json:"base,omitempty"`
	// Replay: no decision is wanted, the run has ended. The answer is DecisionReply.Replay; a
	// decider that knows no replays may answer anything. There are no events, and startedId is 0.
	Replay *ReplayQuestion `json:"replay,omitempty"`
	// Ahead: no decision is wanted yet. See [AheadTask].
	Ahead *AheadTask `json:"ahead,omitempty"`
}

// AheadTask asks a sticky worker that works the task's list as well (see DecisionReply.Lists) to do
// a task first, and to send the decision that follows together with its outcome. It comes on the
// worker's own subject with [AheadHeader]. Any answer on the reply subject refuses it.
//
// The decision task around it is the one that follows the task's success if nothing else happens:
// Events ends with the last event of now, its last DeciderCompleted has the Context, and StartedID
// counts four more, which the worker adds itself: ActivityStarted and ActivitySuccess with what it
// reports, Scheduled, and DeciderStarted.
type AheadTask struct {
	// Task has no Input: that stands in its ActivityScheduled.
	Task ActivityTask `json:"task"`
	// At is when it was sent, by the owner's clock.
	At Timestamp `json:"at"`
	// Scheduled is what the DeciderScheduled says that will follow.
	Scheduled DeciderScheduled `json:"scheduled"`
}

// OfferPatience is how long an offer may be without an outcome or an announcement: then its owner
// puts it on the list, and a worker that comes to it later asks.
const OfferPatience = time.Second

// AheadEvents is how many events a success of an [AheadTask] adds up to the DeciderStarted of its
// decision.
const AheadEvents = 4

// AheadHeader marks a message on a worker's own decide subject as one with an [AheadTask]. It has
// two values: the task's list and the activity type.
const AheadHeader = "Drover-Ahead"

// AheadDecision is the decision that follows an outcome, in the report of this. The owner applies
// it if the history is what the worker assumed; else it drops it without a trace, and asks.
type AheadDecision struct {
	// At is the time of the outcome and of all that follows: that of the AheadTask, and what has
	// passed since.
	At Timestamp `json:"at"`
	// Token is that of the decision task.
	Token string `json:"token"`
	// Reply is a [DecisionReply] as it would have been sent.
	Reply []byte `json:"reply"`
}

// DecisionBase names a committed reply: its DeciderCompleted and the digest of its bytes.
type DecisionBase struct {
	CompletedID int64  `json:"completedId"`
	Digest      string `json:"digest"`
}

// DecisionReply is a decider's answer. Either Decisions (which may be empty) or Error is meant.
type DecisionReply struct {
	V         int        `json:"v,omitempty"`
	Token     string     `json:"token"`
	Decisions []Decision `json:"decisions"`
	Context   Payload    `json:"context,omitempty"`
	Identity  string     `json:"identity,omitempty"`
	// Sticky names the worker that would like the run's next tasks, on its own subject and in
	// msgpack.
	Sticky string `json:"sticky,omitempty"`
	// Alive says that the worker of Sticky listens to the type's subject of the worker "alive-" and
	// that name, as long as it is at work: what it has in hand is given to others when nobody
	// listens there any more. What comes there needs no answer.
	Alive bool `json:"alive,omitempty"`
	// Lists are task lists that the same process works: it takes tasks of these together with what
	// the decision after them needs (see [AheadTask]).
	Lists []string       `json:"lists,omitempty"`
	Error *DecisionError `json:"error,omitempty"`
	// Replay answers the question of a task about a replay.
	Replay *ReplayAnswer `json:"replay,omitempty"`
	// AllOrNothing: if the run cannot be closed, since something has come in that the task does not
	// show, nothing of the reply stands, and the decider is asked again at once. After ten times in
	// a row the run is closed all the same; P-4 holds for ContinueAsNew.
	AllOrNothing bool `json:"allOrNothing,omitempty"`
	// Again asks for another decision directly after this one, even if nothing happens. Its task
	// comes when what this reply decides is stored.
	Again bool `json:"again,omitempty"`
}

// MaxDeciderReason and MaxDeciderDetails bound what a history keeps of why a decider failed, in
// bytes.
const (
	MaxDeciderReason  = 2 << 10
	MaxDeciderDetails = 32 << 10
)

// DecisionError says that the decider could not decide. The history keeps 2 KiB of the reason and
// 32 KiB of the details.
type DecisionError struct {
	Cause   Cause  `json:"cause,omitempty"`
	Reason  string `json:"reason"`
	Details string `json:"details,omitempty"`
}

// Announcement is published by a decider that begins to listen, so that waiting runs are asked at
// once. Any body, even an empty one, does.
type Announcement struct {
	V      int    `json:"v,omitempty"`
	Type   string `json:"type,omitempty"`
	Worker string `json:"worker,omitempty"`
	// Left says that it is the other way round: the worker of this name ([DecisionReply.Sticky])
	// has answered its last task of the type and goes. Nobody is asked in its place.
	Left string `json:"left,omitempty"`
}

// ActivityTask is what an activity worker pulls from its list. It travels as JSON.
type ActivityTask struct {
	V                int       `json:"v,omitempty"`
	Namespace        string    `json:"namespace"`
	WorkflowID       string    `json:"workflowId"`
	Run              string    `json:"run"`
	WorkflowType     string    `json:"workflowType"`
	ActivityID       string    `json:"activityId"`
	Type             string    `json:"type"`
	TypeVersion      string    `json:"typeVersion,omitempty"`
	Input            Payload   `json:"input,omitempty"`
	List             string    `json:"list"`
	Attempt          int       `json:"attempt"`
	ScheduledEventID int64     `json:"scheduledEventId"`
	ScheduledAt      Timestamp `json:"scheduledAt"`
	// DispatchedAt is when it was given away, if that was at least half a second after ScheduledAt:
	// a later attempt, or a start delay.
	DispatchedAt Timestamp `json:"dispatchedAt,omitempty"`
	// StartToClose bounds the run of the activity; CloseBy, if set, is when the service gives up in
	// any case.
	StartToClose Duration  `json:"startToClose,omitempty"`
	CloseBy      Timestamp `json:"closeBy,omitempty"`
	Heartbeat    Duration  `json:"heartbeat,omitempty"`
	// HeartbeatDetails are those of the last heartbeat of an earlier attempt: go on from there.
	HeartbeatDetails Payload `json:"heartbeatDetails,omitempty"`
	// NotIdempotent: ask before the first run. See Report.
	NotIdempotent  bool   `json:"notIdempotent,omitempty"`
	IdempotencyKey string `json:"idempotencyKey"`
	Token          string `json:"token"`
	Fence          uint64 `json:"fence"`
	// Report is the subject that outcomes and questions are published to; Beat the one heartbeats
	// are sent to.
	Report string `json:"report"`
	Beat   string `json:"beat"`
}

// taskKey is in every activity task, and mostly in nothing else.
var taskKey = []byte(`"scheduledEventId"`)

// IsTask tells whether a body is an [ActivityTask] as it came from its list. Nobody sends one to
// Drover: a report and a heartbeat that hold all of a task have a kind, or are short of its
// subjects.
func IsTask(body []byte) bool {
	if !bytes.Contains(body, taskKey) || !IsJSON(body) {
		return false
	}
	var t struct {
		Kind             *string `json:"kind"`
		Token            string  `json:"token"`
		ScheduledEventID int64   `json:"scheduledEventId"`
		Report           string  `json:"report"`
		Beat             string  `json:"beat"`
	}
	err := json.Unmarshal(body, &t)
	whole := t.Token != "" && t.ScheduledEventID != 0 && t.Report != "" && t.Beat != ""
	return err == nil && whole && t.Kind == nil
}

// ReportKind says what a worker reports.
type ReportKind string

// The report kinds.
const (
	ReportStarted  ReportKind = "started"
	ReportSuccess  ReportKind = "success"
	ReportFailed   ReportKind = "failed"
	ReportCanceled ReportKind = "canceled"
	// ReportBegin is a question: may this delivery run? It is asked before a task that is not
	// idempotent, and before any task that the server delivered again. The answer is a
	// [Permission].
	ReportBegin ReportKind = "begin"
	// ReportReturned says that the worker gives a task back, undone: what it was offered, or what
	// it had pulled and cannot end because it stops. The latter it says before it hands the message
	// back (-NAK). An attempt that had begun is interrupted, and that does not count.
	ReportReturned ReportKind = "returned"
	// ReportLost is the master's question about a task whose lease is over while no worker waits
	// for it: its worker is lost. The answer is a [Permission] without Go, with what was Done.
	ReportLost ReportKind = "lost"
)

// LostTask says what the owner of a workflow has done about a task whose worker is lost.
type LostTask string

// What is done about lost tasks.
const (
	// LostGone: nobody waits for this message any more. Remove it.
	LostGone LostTask = "gone"
	// LostStands: the attempt has not begun. Hand the message back, for the next worker.
	LostStands LostTask = "stands"
	// LostHeld: a worker had the attempt as an offer, and is being asked whether it still has it.
	// Hand the message back, and ask again soon.
	LostHeld LostTask = "held"
	// LostReverted: the attempt was interrupted, and the next one is on its list. Remove the
	// message.
	LostReverted LostTask = "reverted"
	// LostFailed: the attempt was interrupted, and the activity, which must not run twice, has
	// failed. Remove the message.
	LostFailed LostTask = "failed"
)

// Report is what an activity worker publishes to the task's report subject, or gives to the owner
// of the workflow (see [OutcomeAnswer]). Token and Kind are always needed.
type Report struct {
	V        int        `json:"v,omitempty"`
	Kind     ReportKind `json:"kind"`
	Token    string     `json:"token"`
	Identity string     `json:"identity,omitempty"`
	Result   Payload    `json:"result,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Details  Payload    `json:"details,omitempty"`
	// Final belongs to failed: there is no other attempt, whatever the retry policy says.
	Final bool `json:"final,omitempty"`
	// Elapsed tells, in an outcome, how long ago the work began. The start is as old in the history
	// if it was not reported, and owners offer tasks of types that are quick.
	Elapsed Duration `json:"elapsed,omitempty"`
	// TaskSequence, Redelivered, Nonce and ReplyTo belong to started, begin, returned and lost: the
	// message in the task stream, 0 for an offer, whether the server delivered it before, a value
	// of the delivery's own, and where the permission goes.
	TaskSequence uint64 `json:"taskSequence,omitempty"`
	Redelivered  bool   `json:"redelivered,omitempty"`
	Nonce        string `json:"nonce,omitempty"`
	ReplyTo      string `json:"replyTo,omitempty"`
	// Offered belongs to started: the task came as an offer, without a message in the task stream.
	Offered bool `json:"offered,omitempty"`
	// Ahead belongs to success: the decision that follows. It counts in what is handed to the owner
	// only.
	Ahead *AheadDecision `json:"ahead,omitempty"`
}

// Permission answers a begin. Without Go the worker forgets the task, and acks it unless it is told
// to leave it.
type Permission struct {
	V       int    `json:"v,omitempty"`
	Nonce   string `json:"nonce"`
	Go      bool   `json:"go"`
	Attempt int    `json:"attempt,omitempty"`
	Token   string `json:"token,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Leave: neither run the task nor settle it. This delivery is a second one of the message that
	// the attempt began with, by a server that has lost count; the lease of the first goes on, and
	// if its worker is lost the task comes back. Or the attempt came to its worker as an offer, and
	// that one is being asked; if it is lost the task comes back as well.
	Leave bool `json:"leave,omitempty"`
	// HeartbeatDetails are those of the last heartbeat of an earlier attempt, as in the task.
	HeartbeatDetails Payload `json:"heartbeatDetails,omitempty"`
	// Done answers the question about a lost task.
	Done LostTask `json:"done,omitempty"`
}

// RequestIDHeader of a signal is its request id: a second signal of one id for a run is dropped.
const RequestIDHeader = "Drover-Request-Id"

// OutcomeAnswer is what the owner of a workflow answers to a [Report] that a worker sends to it as a
// request: an outcome, or a begin about the first delivery of a task that is not idempotent. The
// subject is drover.<ns>.outcome.<p>.<wid>.<list>, with the parts of the task's beat subject. With
// an error, or without an answer, the report goes to the task's report subject, a begin with the
// same nonce.
type OutcomeAnswer struct {
	V int `json:"v,omitempty"`
	// Sequence is that of the history record which holds the outcome; or the start, which means
	// that the task may run. 0 with an error.
	Sequence uint64 `json:"sequence,omitempty"`
	// Error says why no record holds it. The code is conflict where the owner does not take it this
	// way; the report subject is always open. It is invalid_argument where the report has a field
	// that there is not; in the inbox it becomes a dead letter.
	Error *Error `json:"error,omitempty"`
}

// Heartbeat says that an activity is alive. It is a request to the task's beat subject; the answer
// is a [BeatAnswer].
type Heartbeat struct {
	V       int     `json:"v,omitempty"`
	Token   string  `json:"token"`
	Details Payload `json:"details,omitempty"`
}

// BeatAnswer tells a running activity whether it is still wanted.
type BeatAnswer struct {
	V int `json:"v,omitempty"`
	// Gone: the activity is closed; its outcome will be refused.
	Gone bool `json:"gone,omitempty"`
	// CancelRequested: the decider asked for its end.
	CancelRequested bool   `json:"cancelRequested,omitempty"`
	Reason          string `json:"reason,omitempty"`
}

// Alarm is the one message on a run's alarm subject: ring when Due has come.
type Alarm struct {
	V   int       `json:"v,omitempty"`
	Run string    `json:"run"`
	Due Timestamp `json:"due"`
	// Fence is that of the owner who armed it: an owner with a smaller one may not answer its ring.
	// Without one the alarm is rung by way of the inbox.
	Fence uint64 `json:"fence,omitempty"`
}

// Ring is what a timer worker puts into the inbox for a due alarm.
type Ring struct {
	V        int       `json:"v,omitempty"`
	Run      string    `json:"run"`
	Due      Timestamp `json:"due"`
	Sequence uint64    `json:"sequence"`
}

// Rings are alarms of a partition that are due. A timer worker sends them to the owner.
type Rings struct {
	V int `json:"v,omitempty"`
	// Rings are the alarms; the owner answers for each.
	Rings []DueRing `json:"rings"`
}

// DueRing is one alarm that is due.
type DueRing struct {
	WorkflowID string    `json:"workflowId"`
	Run        string    `json:"run"`
	Due        Timestamp `json:"due"`
	Sequence   uint64    `json:"sequence"`
	Fence      uint64    `json:"fence"`
}

// RingsAnswer says what became of rings, some or all of them; the rest is answered later.
type RingsAnswer struct {
	V int `json:"v,omitempty"`
	// Done are the sequences of alarms that are not needed any more: what they were for is in the
	// history, and if something else is due later another alarm is stored.
	Done []uint64 `json:"done,omitempty"`
	// Refused: this owner answers no more of them. They are to be put into the inbox.
	Refused bool `json:"refused,omitempty"`
}

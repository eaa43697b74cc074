package actor

import (
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/schemas"
)

// Message is a message on its way to a run.
type Message struct {
	WorkflowID string
	Event      execution.Message
	// At is the server's time of the message, or the corrected clock for what comes by no log, or
	// whose stamp is ahead of it.
	At         schemas.Timestamp
	Position   schemas.Position
	Completion *watermark.Completion
	Subject    string
	Body       []byte
	// Answer tells the requester how it went, once that is in the history.
	Answer func(r *Run, events []schemas.Event)
	// Refuse sends back what came by no log and cannot be applied: its sender then takes the way
	// through the inbox.
	Refuse func()
	Ahead  *schemas.AheadDecision // that came with an outcome

	Verdict Verdict           // on a start
	Allowed *intake.Allowance // of its log, that it has used; nil once it is given back
	// Kept: it waits, or its letter does, and keeps what it is allowed.
	Kept bool
	// Final says that the inbox has been read up to where it stood when this signal came (P-12).
	Final bool
	Fresh bool // the run id of a start is known to be unused
	// Looked: the index of ids does not have its own.
	Looked bool
	Log    int // that it came by, or intake.None
}

// Stored is when the message was stored, by the server that did it.
func (e *Message) Stored() schemas.Timestamp {
	if e.Log == intake.None {
		return e.At
	}
	return e.Position.Time
}

// Verdict is what became of a start.
type Verdict struct {
	Run     string
	Refused *schemas.Error
	Started bool
	// Replaces: the run that was in the way has been ended for this start.
	Replaces bool
}

// Group is what one message has caused: it is committed whole.
type Group struct {
	Events      []schemas.Event
	Effects     []Effect
	Completions []*watermark.Completion
	Answers     []func()
	Size        int
	// Positions is how far the workflow id has consumed the logs with this group. What waits after
	// it for another record is not consumed yet: if its owner dies, the next one must read it
	// again.
	Positions [2]schemas.Position
}

// Effect is an execution.Effect with the message that caused it.
type Effect struct {
	execution.Effect
	Cause *Message
}

// Judged gives back what a message has of its log's allowance, once.
func (e *Message) Judged() {
	if e.Allowed != nil {
		e.Allowed.Give(len(e.Body))
		e.Allowed = nil
	}
}

package partition

import (
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/schemas"
)

// message is a message on its way to a run.
type message struct {
	wid   string
	event execution.Message
	// at is the server's time of the message, or the corrected clock for what comes by no log, or
	// whose stamp is ahead of it.
	at         schemas.Timestamp
	pos        schemas.Position
	completion *watermark.Completion
	subject    string
	body       []byte
	// answer tells the requester how it went, once that is in the history.
	answer func(r *run, events []schemas.Event)
	// refuse sends back what came by no log and cannot be applied: its sender then takes the way
	// through the inbox.
	refuse func()
	ahead  *schemas.AheadDecision // that came with an outcome

	verdict verdict           // on a start
	allowed *intake.Allowance // of its log, that it has used; nil once it is given back
	// kept: it waits, or its letter does, and keeps what it is allowed.
	kept bool
	// final says that the inbox has been read up to where it stood when this signal came (P-12).
	final bool
	fresh bool // the run id of a start is known to be unused
	// looked: the index of ids does not have its own.
	looked bool
	log    int
}

// stored is when the message was stored, by the server that did it.
func (e *message) stored() schemas.Timestamp {
	if e.log == intake.None {
		return e.at
	}
	return e.pos.Time
}

// verdict is what became of a start.
type verdict struct {
	run     string
	refused *schemas.Error
	started bool
	// replaces: the run that was in the way has been ended for this start.
	replaces bool
}

// group is what one message has caused: it is committed whole.
type group struct {
	events      []schemas.Event
	effects     []effect
	completions []*watermark.Completion
	answers     []func()
	size        int
	alarmFired  bool // by an alarm
	// positions is how far the workflow id has consumed the logs with this group. What waits after
	// it for another record is not consumed yet: if its owner dies, the next one must read it
	// again.
	positions [2]schemas.Position
}

// effect is an execution.Effect with the message that caused it.
type effect struct {
	execution.Effect
	cause *message
}

// judged gives back what a message has of its log's allowance, once.
func (e *message) judged() {
	if e.allowed != nil {
		e.allowed.Give(len(e.body))
		e.allowed = nil
	}
}

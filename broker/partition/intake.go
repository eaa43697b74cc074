package partition

import (
	"context"
	"fmt"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/alarms"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// openLog decides where to read a log from. witness is the highest position that is known to be
// consumed.
func (p *Partition) openLog(
	ctx context.Context, number int, stream, filter string, witness schemas.Position,
) error {
	log, lost, err := intake.Open(ctx, p.Env.Conn, intake.Place{
		Number: number, Stream: stream, Filter: filter, Checkpoint: p.positionOf(number),
		Witness: witness,
	})
	if lost != 0 {
		p.Log.WithField("stream", stream).WithField("incarnation", lost).
			Warn("the stream has lost messages that were stored; a new incarnation begins")
	}
	p.intake.Logs[number] = log
	return err
}

// follow reads the log onto the loop.
func (p *Partition) follow(ctx context.Context, in *intake.Log) (*natsconn.Reader, error) {
	options := natsconn.ReadOptions{StartSeq: in.From}
	if in.Filter != "" {
		options.FilterSubjects = []string{in.Filter}
	}
	return p.Env.Conn.Read(ctx, in.Stream, options, func(m natsconn.Stored) {
		e := p.open(in, m)
		if !p.large.LookUp(ctx, in, e) || !p.large.Spill(ctx, in, m, e) ||
			!in.Allowance.Take(ctx, len(e.Body)) {
			return
		}
		e.Allowed = &in.Allowance
		p.Loop.Post(func() { p.takeMessage(in, e) })
	})
}

// open parses a message on the reader's goroutine. It never fails: what cannot be understood
// becomes a dead letter.
func (p *Partition) open(in *intake.Log, m natsconn.Stored) *actor.Opened {
	e := &actor.Message{At: schemas.At(m.Time), Log: in.Number, Subject: m.Subject, Body: m.Data}
	o := &actor.Opened{Message: e, Seq: m.Seq}
	if in.Number == signalLog {
		o.Foreign = isAnswer(m.Data) ||
			natsconn.GivenOfDrover(m.Header)+natsconn.GivenBody(m.Data) != ""
		_, wid, name, err := subject.ParseSignalStored(m.Subject)
		o.WorkflowID, o.Err = wid, err
		e.Event = execution.Signal{Name: name, Input: m.Data, RequestID: requestIDOf(m.Header)}
		return o
	}
	_, wid, kind, rest, err := subject.ParseIn(m.Subject)
	if err != nil {
		o.Err = err
		return o
	}
	o.WorkflowID = wid
	o.Foreign = kind != actor.KindActivity && m.Header.Get(natsconn.HeaderSubject) != m.Subject ||
		natsconn.GivenOut(m.Header) != ""
	switch kind {
	case "start":
		r := &schemas.StartRequest{}
		o.Err = schemas.Unmarshal(m.Data, r)
		e.Event = execution.Start{Request: r}
	case actor.KindActivity:
		r := &schemas.Report{}
		o.Err = natsconn.Decode(m.Header, m.Data, r)
		if len(rest) != 1 {
			o.Err = fmt.Errorf("the subject %s names no list", m.Subject)
			return o
		}
		e.Event = execution.Report{Report: r, List: rest[0]}
	case "alarm":
		r := &schemas.Ring{}
		o.Err = schemas.Unmarshal(m.Data, r)
		o.Fire = r
		e.Event = execution.AlarmFired{}
	case actor.KindChild:
		r := &schemas.ChildReport{}
		o.Err = schemas.Unmarshal(m.Data, r)
		e.Event = execution.Child{Report: r}
	case actor.KindSignal:
		r := &schemas.ExternalSignal{}
		o.Err = schemas.Unmarshal(m.Data, r)
		e.Event = execution.Signal{Name: r.Name, Input: r.Input, External: r}
	case actor.KindExternal:
		r := &schemas.ExternalAnswer{}
		o.Err = schemas.Unmarshal(m.Data, r)
		e.Event = execution.External{Answer: r}
	default:
		openRequest(o, kind, m.Data)
	}
	return o
}

// openRequest parses what operators ask for, and brokers in the name of a workflow.
func openRequest(o *actor.Opened, kind string, body []byte) {
	r := &schemas.ExecutionRequest{}
	o.Err = schemas.Unmarshal(body, r)
	o.Request = r
	switch kind {
	case "pause":
		o.Event = execution.Pause{Request: r}
	case "resume":
		o.Event = execution.Resume{Request: r}
	case actor.KindCancel:
		o.Event = execution.Cancel{Request: r}
	case actor.KindEnd:
		o.Event = execution.Terminate{Request: r}
	case actor.VerbHold:
		o.Event = execution.Hold{Request: r}
	case actor.VerbRelease:
		o.Event = execution.Release{Request: r}
	case actor.KindBreakLock:
		o.Event = execution.BreakLock{Request: r}
	default:
		o.Err = fmt.Errorf("inbox messages of kind %q are not known", kind)
	}
}

// takeMessage takes a message of a log, in the log's order.
func (p *Partition) takeMessage(in *intake.Log, o *actor.Opened) {
	if p.leaving != nil {
		return // the next owner reads it
	}
	e := o.Message
	if in.Number == inboxLog {
		// what waits for a run does so in its mailbox; nobody who is not trusted writes here
		e.Judged()
	}
	e.Position, e.Completion = in.Enter(o.Seq, e.At)
	// The leader of this stream may be a server whose clock is ahead. Nothing is due by that, and
	// nothing is to count from it (P-15).
	e.At = min(e.At, p.Env.Latest())
	defer p.progress()
	switch {
	case !p.positionOf(in.Number).Before(e.Position):
		e.Judged()
		e.Completion.Release() // below the checkpoint: a new incarnation reads from the beginning
		return
	case o.Err != nil:
		p.bury(e, dead.ReasonUndecodable, o.Err.Error())
		e.Completion.Release()
		return
	case o.Foreign:
		p.bury(e, deadForeign,
			"nobody has meant this message for its subject: it is the answer to a question that "+
				"named the subject for it, or was published by hand")
		e.Completion.Release()
		return
	case len(e.Body)-o.Spilled > p.Env.MessageLimit():
		p.bury(e, deadTooLarge, fmt.Sprintf(
			"%d bytes; at most %d fit into a decision task: pass a reference instead, or "+
				"raise the server's max_payload", len(e.Body)-o.Spilled, p.Env.MessageLimit()))
		e.Completion.Release()
		return
	case in.Number == signalLog && p.isBuried(e):
		e.Judged()
		e.Completion.Release()
		return
	}
	r := p.cache.Get(o.WorkflowID)
	switch msg := e.Event.(type) {
	case execution.Start:
		if o := msg.Request.Origin; o != nil && o.Parent != nil {
			e.Answer = p.exchange.AnswerChild(e, msg.Request)
		} else {
			msg.Request.Origin, msg.Request.Replays = nil, nil // replays begin at the owner
			e.Answer = p.answerStart(e, msg.Request)
		}
	case execution.AlarmFired:
		p.cache.When(r, func() { p.alarms.Fired(r, o.Fire, e.Completion, alarms.Stored) })
	case execution.Pause, execution.Resume, execution.Hold, execution.Release, execution.Cancel,
		execution.Terminate, execution.BreakLock:
		e.Answer = p.answerRequest(o.Request)
	}
	p.deliver(r, e)
}

func (p *Partition) positionOf(log int) schemas.Position {
	if log == inboxLog {
		return p.handover.Checkpointed.Inbox
	}
	return p.handover.Checkpointed.Signals
}

// progress looks whether what waits for the end of a log can go on.
func (p *Partition) progress() {
	if p.handover.Recovered != nil && p.intake.BacklogDone() {
		p.handover.BacklogRead()
	}
	if p.intake.Early.Len() > 0 {
		p.adopt()
	}
}

// place is where a message stood.
func (p *Partition) place(e *actor.Message) dead.Place {
	sequence := e.Position.Sequence
	if e.Log == noLog {
		sequence = p.intake.Letters.Number()
	}
	return intake.PlaceIn(p.Partition, e.Log, sequence, e.Stored())
}

// isBuried tells whether a predecessor has put a signal into the dead letters. What was in the log
// at take-over comes once: then its letters are forgotten.
func (p *Partition) isBuried(e *actor.Message) bool {
	letters := &p.intake.Letters
	if e.Position.Sequence > p.intake.Logs[signalLog].End {
		letters.Forget()
	}
	return letters.Remembered() > 0 && letters.Took(p.place(e))
}

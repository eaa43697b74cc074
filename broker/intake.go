package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// intake is a partition's place in one of its two logs.
type intake struct {
	log          int
	stream       string
	filter       string
	lowWatermark watermark.Tracker

	// incarnation counts how often the stream lost a tail; messages stamped after since belong to it, older ones to the
	// one before (P-9).
	incarnation uint32
	since       schemas.Timestamp

	from      uint64           // where reading begins
	end       uint64           // the last sequence at take-over: the backlog
	read      schemas.Position // the last message that came in
	at        uint64           // its place in the stream as it is now, which begins anew after a lost end
	allowance allowance
}

// newIntake decides where to read from. witness is the highest position that is known to be consumed: if the message there
// is not the one that was consumed, the stream has lost a tail and a new incarnation begins.
func (p *partition) newIntake(ctx context.Context, log int, stream, filter string, witness schemas.Position) (*intake, error) {
	checkpoint := p.checkpointed.Inbox
	if log == signalLog {
		checkpoint = p.checkpointed.Signals
	}
	in := &intake{log: log, stream: stream, filter: filter, incarnation: witness.Incarnation, from: checkpoint.Sequence + 1}
	in.lowWatermark.StartAt(checkpoint)
	first, last, err := p.b.conn.StreamState(ctx, stream)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", stream, err)
	}
	in.end = last
	lost, err := p.lostTail(ctx, in, witness, first, last)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", stream, err)
	}
	switch {
	case lost:
		in.incarnation, in.since, in.from = witness.Incarnation+1, witness.Time, 1
		p.log.WithField("stream", stream).WithField("incarnation", in.incarnation).
			Warn("the stream has lost messages that were stored; a new incarnation begins")
	case witness.Incarnation != checkpoint.Incarnation:
		in.since, in.from = checkpoint.Time, 1 // whoever began it has left no checkpoint of it: the number of ours says nothing
	}
	in.read, in.at = checkpoint, in.from-1
	return in, nil
}

func (p *partition) lostTail(ctx context.Context, in *intake, witness schemas.Position, first, last uint64) (bool, error) {
	if witness.Sequence == 0 {
		return false, nil
	}
	if last < witness.Sequence {
		return true, nil
	}
	if witness.Sequence < first {
		return false, nil // purged since; the purge line is below every checkpoint's witness
	}
	m, err := p.b.conn.GetSeq(ctx, in.stream, witness.Sequence)
	switch {
	case errors.Is(err, natsconn.ErrNotFound):
		// Purged in the middle: only the signals stream is purged by subject, and never at a witness.
		return in.log == inboxLog, nil
	case err != nil:
		return false, err
	}
	return schemas.At(m.Time) != witness.Time, nil
}

// position places a message in its incarnation.
func (in *intake) position(seq uint64, at schemas.Timestamp) schemas.Position {
	pos := schemas.Position{Incarnation: in.incarnation, Sequence: seq, Time: at}
	if in.since != 0 && pos.Time <= in.since && pos.Incarnation > 0 {
		pos.Incarnation--
	}
	return pos
}

// follow reads the log onto the loop.
func (p *partition) follow(ctx context.Context, in *intake) (*natsconn.Reader, error) {
	options := natsconn.ReadOptions{StartSeq: in.from}
	if in.filter != "" {
		options.FilterSubjects = []string{in.filter}
	}
	return p.b.conn.Read(ctx, in.stream, options, func(m natsconn.Stored) {
		e := p.open(in, m)
		if !p.lookUp(ctx, in, e) || !p.spill(ctx, in, m, e) || !in.allowance.take(ctx, len(e.body)) {
			return
		}
		e.allowed = &in.allowance
		p.loop.post(func() { p.intake(in, e) })
	})
}

// open parses a message on the reader's goroutine. It never fails: what cannot be understood becomes a dead letter.
func (p *partition) open(in *intake, m natsconn.Stored) *opened {
	e := &message{at: schemas.At(m.Time), log: in.log, subject: m.Subject, body: m.Data}
	o := &opened{message: e, seq: m.Seq}
	if in.log == signalLog {
		o.foreign = isAnswer(m.Data) || natsconn.GivenOfDrover(m.Header)+natsconn.GivenBody(m.Data) != ""
		_, wid, name, err := subject.ParseSignalStored(m.Subject)
		o.wid, o.err = wid, err
		e.event = execution.Signal{Name: name, Input: m.Data, RequestID: requestIDOf(m.Header)}
		return o
	}
	_, wid, kind, rest, err := subject.ParseIn(m.Subject)
	if err != nil {
		o.err = err
		return o
	}
	o.wid = wid
	o.foreign = kind != kindActivity && m.Header.Get(natsconn.HeaderSubject) != m.Subject || natsconn.GivenOut(m.Header) != ""
	switch kind {
	case "start":
		r := &schemas.StartRequest{}
		o.err = schemas.Unmarshal(m.Data, r)
		e.event = execution.Start{Request: r}
	case kindActivity:
		r := &schemas.Report{}
		o.err = natsconn.Decode(m.Header, m.Data, r)
		if len(rest) != 1 {
			o.err = fmt.Errorf("the subject %s names no list", m.Subject)
			return o
		}
		e.event = execution.Report{Report: r, List: rest[0]}
	case "alarm":
		r := &schemas.Ring{}
		o.err = schemas.Unmarshal(m.Data, r)
		o.fire = r
		e.event = execution.AlarmFired{}
	case kindChild:
		r := &schemas.ChildReport{}
		o.err = schemas.Unmarshal(m.Data, r)
		e.event = execution.Child{Report: r}
	case kindSignal:
		r := &schemas.ExternalSignal{}
		o.err = schemas.Unmarshal(m.Data, r)
		e.event = execution.Signal{Name: r.Name, Input: r.Input, External: r}
	case kindExternal:
		r := &schemas.ExternalAnswer{}
		o.err = schemas.Unmarshal(m.Data, r)
		e.event = execution.External{Answer: r}
	default:
		o.openRequest(kind, m.Data)
	}
	return o
}

// openRequest parses what operators ask for, and brokers in the name of a workflow.
func (o *opened) openRequest(kind string, body []byte) {
	r := &schemas.ExecutionRequest{}
	o.err = schemas.Unmarshal(body, r)
	o.request = r
	switch kind {
	case "pause":
		o.event = execution.Pause{Request: r}
	case "resume":
		o.event = execution.Resume{Request: r}
	case kindCancel:
		o.event = execution.Cancel{Request: r}
	case kindEnd:
		o.event = execution.Terminate{Request: r}
	case verbHold:
		o.event = execution.Hold{Request: r}
	case verbRelease:
		o.event = execution.Release{Request: r}
	case kindBreakLock:
		o.event = execution.BreakLock{Request: r}
	default:
		o.err = fmt.Errorf("inbox messages of kind %q are not known", kind)
	}
}

// opened is a parsed message, before its position is known.
type opened struct {
	*message
	seq     uint64
	fire    *schemas.Ring
	request *schemas.ExecutionRequest
	signal  schemas.Payload // while the input of a signal is spilled
	spilled int             // bytes of the body that stand in the object store
	foreign bool            // nobody has meant it for its subject
	err     error
}

// intake takes a message of a log, in the log's order.
func (p *partition) intake(in *intake, o *opened) {
	if p.leaving != nil {
		return // the next owner reads it
	}
	e := o.message
	if in.log == inboxLog {
		e.judged() // what waits for a run does so in its mailbox; nobody who is not trusted writes here
	}
	e.pos = in.position(o.seq, e.at)
	// The leader of this stream may be a server whose clock is ahead. Nothing is due by that, and nothing is to count from it (P-15).
	e.at = min(e.at, p.b.latest())
	e.completion = in.lowWatermark.Enter(e.pos)
	in.read, in.at = e.pos, o.seq
	defer p.progress()
	switch {
	case !p.positionOf(in.log).Before(e.pos):
		e.judged()
		e.completion.Release() // below the checkpoint: a new incarnation reads from the beginning
		return
	case o.err != nil:
		p.bury(e, deadUndecodable, o.err.Error())
		e.completion.Release()
		return
	case o.foreign:
		p.bury(e, deadForeign, "nobody has meant this message for its subject: it is the answer to a question that named the subject for it, or was published by hand")
		e.completion.Release()
		return
	case len(e.body)-o.spilled > p.b.messageLimit():
		p.bury(e, deadTooLarge, fmt.Sprintf("%d bytes; at most %d fit into a decision task: pass a reference instead, or raise the server's max_payload", len(e.body)-o.spilled, p.b.messageLimit()))
		e.completion.Release()
		return
	case in.log == signalLog && p.isBuried(e):
		e.judged()
		e.completion.Release()
		return
	}
	r := p.get(o.wid)
	switch msg := e.event.(type) {
	case execution.Start:
		if o := msg.Request.Origin; o != nil && o.Parent != nil {
			e.answer = p.answerChild(e, msg.Request)
		} else {
			msg.Request.Origin, msg.Request.Replays = nil, nil // replays begin at the owner
			e.answer = p.answerStart(e, msg.Request)
		}
	case execution.AlarmFired:
		p.when(r, func() { p.fired(r, o.fire, e.completion, stored) })
	case execution.Pause, execution.Resume, execution.Hold, execution.Release, execution.Cancel, execution.Terminate, execution.BreakLock:
		e.answer = p.answerRequest(o.request)
	}
	p.deliver(r, e)
}

func (p *partition) positionOf(log int) schemas.Position {
	if log == inboxLog {
		return p.checkpointed.Inbox
	}
	return p.checkpointed.Signals
}

// progress looks whether what waits for the end of a log can go on.
func (p *partition) progress() {
	if p.recovered != nil && p.backlogDone() {
		p.backlogRead()
	}
	if len(p.orphans.queue) > 0 {
		p.adopt()
	}
}

func (p *partition) backlogDone() bool {
	for _, in := range p.intakes {
		if in.at < in.end && in.log == inboxLog {
			return false
		}
	}
	return true
}

// deadTail is the part of a dead letter's subject that tells the log the message stood in.
func deadTail(partition, log int) []string {
	return []string{strconv.Itoa(partition), []string{"in", "signals", "none"}[log]}
}

// place is where a message stood: its dead letter is written once for each place. The server's time tells apart messages of
// one sequence in a stream that lost its tail. Their incarnation does not: it is known of the last two only.
func (p *partition) place(e *message) dead.Place {
	sequence := e.pos.Sequence
	if e.log == noLog {
		p.nextDead++
		sequence = p.nextDead
	}
	tail := deadTail(p.n, e.log)
	return dead.Place{Partition: tail[0], Stream: tail[1], Incarnation: strconv.FormatInt(int64(e.stored()), 10), Sequence: sequence}
}

// isBuried tells whether a predecessor has put a signal into the dead letters. What was in the log at take-over
// comes once: then its letters are forgotten.
func (p *partition) isBuried(e *message) bool {
	if e.pos.Sequence > p.intakes[signalLog].end {
		p.buried = nil
	}
	if len(p.buried) == 0 {
		return false
	}
	place := strings.Join(p.place(e).Tokens(), ".")
	found := p.buried[place]
	delete(p.buried, place)
	return found
}

// placeOf finds the place in a dead letter's subject: its last four tokens.
func placeOf(subj string) string {
	tokens := strings.Split(subj, ".")
	return strings.Join(tokens[max(len(tokens)-4, 0):], ".")
}

package natsconn

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// Headers of an atomic batch. The server stores them with the messages.
const (
	headerBatchID     = "Nats-Batch-Id"
	headerBatchSeq    = "Nats-Batch-Sequence"
	headerBatchCommit = "Nats-Batch-Commit"
)

const (
	// maxGroup is what the server takes in one batch.
	maxGroup = 1000
	// groupBytes bounds a group: the server keeps it twice until it is committed.
	groupBytes = 1 << 20
	// groupFrom is from how many messages on a batch is quicker than as many single ones: measured,
	// with files in memory for the messages of a batch and 0.2 ms for a sync. Where a sync takes
	// longer, two or three messages wait a little.
	groupFrom = 4
	// batchRoom is more than what the headers of a batch add to a message.
	batchRoom = 1 << 10
)

// batchCodes are refusals of a batch as such: nothing of it was stored, and its messages may be
// accepted one by one.
var batchCodes = []int{
	10174, // the stream takes no batches
	10175, // no number
	10176, // incomplete: the server could not gather it
	10177, // a header that batches may not have
	10179, // id
	10199, // too many messages
	10210, // too many batches at a time
}

// grouping stores messages in groups where every message costs the server a sync. While some are on
// their way the others wait, and go together as soon as the last of those is answered: no timer,
// and no delay for one that comes alone. Four and more go as an atomic batch, which the server
// syncs once and answers once; fewer go one by one, in a pipeline.
//
// A message that may be part of a batch carries the expected last sequence of the stream. In a
// batch only the first may: the server stores them after each other, so that what the others expect
// is true if they count on from the first one, and those that do not are left for the next group.
// Each keeps what it expects of its own subject. A subject is in a batch once: the server would
// judge a second message by what was there before the batch.
//
// What differs from single messages: a refusal of one refuses all of its group.
//
// Considered: to publish single messages with server and files that do not sync, and to sync the
// files of the stream from outside before an acknowledgement counts: twice as fast. But then the
// server renames files that it has compacted without a sync, and acknowledges signals of strangers
// before theirs.
type grouping struct {
	most    int // messages in a batch; 0: each message goes at once
	prefix  string
	batches uint64     // numbers the batches
	single  bool       // the server has refused a batch as such: no more of them
	waiting []outgoing // in the order of their numbers
	flight  []outgoing // on their way; they may be answered already
	batched bool       // the flight is one batch, whose last number is answered
	seen    map[string]struct{}
}

// outgoing is a message that can be published later, or again.
type outgoing struct {
	n       uint64
	subject string
	header  Header
	body    []byte
	size    int    // in bytes, about
	expects uint64 // the stream's last sequence
	unfit   bool   // for a batch
}

func newOutgoing(n uint64, subject string, h Header, body []byte, limit int) outgoing {
	l := outgoing{
		n: n, subject: subject, header: make(Header, len(h)+3), body: slices.Clone(body),
		size: len(subject) + len(body),
	}
	for k, v := range h {
		l.header[k] = slices.Clone(v)
		l.size += len(k)
		for _, s := range v {
			l.size += len(s)
		}
	}
	expects := h[headerExpectLastSeq]
	if len(expects) != 1 {
		l.unfit = true
		return l
	}
	var err error
	l.expects, err = strconv.ParseUint(expects[0], 10, 64)
	// What the client library refuses must not leave a hole in a batch.
	l.unfit = err != nil || subject == "" || strings.ContainsAny(subject, " \t\r\n") ||
		l.size > min(groupBytes, limit-batchRoom) || h["Nats-Msg-Id"] != nil ||
		h["Nats-Rollup"] != nil || h["Nats-Expected-Last-Msg-Id"] != nil
	return l
}

// take removes from what waits the messages that go next, and tells whether they go as a batch.
func (g *grouping) take() {
	g.flight, g.batched = g.flight[:0], false
	if len(g.waiting) == 0 {
		return
	}
	n := g.fitting()
	if g.batched = n >= groupFrom; !g.batched {
		n = len(g.waiting)
		if !g.single {
			n = min(n, groupFrom) // those after may make a batch
		}
	}
	g.flight = append(g.flight, g.waiting[:n]...)
	kept := copy(g.waiting, g.waiting[n:])
	clear(g.waiting[kept:])
	g.waiting = g.waiting[:kept]
}

// fitting tells how many of those that wait can be one batch.
func (g *grouping) fitting() int {
	if g.single {
		return 0
	}
	if g.seen == nil {
		g.seen = make(map[string]struct{})
	}
	clear(g.seen)
	bytes := 0
	for i := range g.waiting {
		l := &g.waiting[i]
		bytes += l.size
		_, again := g.seen[l.subject]
		if i == g.most || l.unfit || again || bytes > groupBytes ||
			l.expects != g.waiting[0].expects+uint64(i) {
			return i
		}
		g.seen[l.subject] = struct{}{}
	}
	return len(g.waiting)
}

// mark makes the flight a batch of the server's.
func (g *grouping) mark() {
	g.batches++
	id := []string{g.prefix + strconv.FormatUint(g.batches, 36)}
	for i := range g.flight {
		h := g.flight[i].header
		h[headerBatchID] = id
		h[headerBatchSeq] = []string{strconv.Itoa(i + 1)}
		if i > 0 {
			delete(h, headerExpectLastSeq)
		}
	}
	g.flight[len(g.flight)-1].header[headerBatchCommit] = []string{"1"}
}

// unmark makes single messages of the flight again.
func (g *grouping) unmark() {
	for i := range g.flight {
		l := &g.flight[i]
		for _, k := range []string{headerBatchID, headerBatchSeq, headerBatchCommit} {
			delete(l.header, k)
		}
		ExpectLastSeq(l.header, l.expects)
	}
}

// refusedAsBatch tells whether the messages of a batch may be sent again one by one.
func refusedAsBatch(err error) bool {
	e, ok := errors.AsType[*APIError](err)
	return ok && slices.Contains(batchCodes, e.ErrCode)
}

// depart publishes what waits, unless something is on its way. The caller holds sending.
func (b *Outbox) depart() {
	g := &b.group
	for {
		b.mu.Lock()
		over := len(g.flight) == 0 || b.head > g.flight[len(g.flight)-1].n
		if b.closed || !over {
			b.mu.Unlock()
			return
		}
		// What has failed or is late by now is not sent.
		g.waiting = slices.DeleteFunc(g.waiting,
			func(l outgoing) bool { return l.n < b.head || b.slot(l.n).done == nil })
		g.take()
		b.mu.Unlock()
		if len(g.flight) == 0 {
			return
		}
		if g.batched {
			g.mark()
		}
		b.publishFlight()
	}
}

// publishFlight sends the flight. Of a batch only the last message is answered, for all.
func (b *Outbox) publishFlight() {
	g := &b.group
	last := len(g.flight) - 1
	for i := range g.flight {
		l := &g.flight[i]
		b.msg = nats.Msg{Subject: l.subject, Header: l.header, Data: l.body}
		if !g.batched || i == last {
			b.msg.Reply = b.reply(l.n)
		}
		err := b.conn.write(&b.msg)
		if err == nil {
			continue
		}
		if !g.batched {
			b.failSend(l.n, l.subject, err)
			continue
		}
		for j := range g.flight { // without one of its messages nothing of a batch is stored
			b.failSend(g.flight[j].n, g.flight[j].subject, err)
		}
		break
	}
	b.msg = nats.Msg{}
}

// received handles an answer while messages go in groups.
func (b *Outbox) received(n uint64, ack Ack) {
	b.sending.Lock()
	g := &b.group
	var done []outcome
	b.mu.Lock()
	switch whole := g.batched && len(g.flight) > 0 && n == g.flight[len(g.flight)-1].n; {
	case whole && refusedAsBatch(ack.Err) && n >= b.head && b.slot(n).done != nil:
		// else it is a second answer, or late
		g.single, g.batched = true, false
		b.mu.Unlock()
		g.unmark()
		b.publishFlight()
		b.sending.Unlock()
		return
	case whole:
		for i := range g.flight {
			one := ack
			if ack.Err == nil {
				one.Seq = ack.Seq - uint64(len(g.flight)-1-i)
			}
			if d := b.take(g.flight[i].n); d != nil {
				done = append(done, outcome{d, one})
			}
		}
	default:
		if d := b.take(n); d != nil {
			done = append(done, outcome{d, ack})
		}
	}
	b.mu.Unlock()
	b.depart() // first, so that the server has work while we do ours
	b.sending.Unlock()
	for _, o := range done {
		o.done(o.ack)
	}
}

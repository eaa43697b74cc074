package writer

import (
	"crypto/sha256"
	"errors"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/stats"
	"github.com/droverhq/drover/schemas"
)

// Host is the partition as this package needs it. Its methods are called on the loop.
type Host interface {
	// CanWrite tells whether a write may still be sent (P-16).
	CanWrite() bool
	// Fail ends the term: what is in memory may be ahead of the history.
	Fail(format string, args ...any)
	// Fence is the sequence of the owner's fence record.
	Fence() uint64
	// HoldEffects keeps the effects position before a record until its effects are performed.
	HoldEffects(sequence uint64) *watermark.Completion
	// Committed goes on with a run whose record is in the history.
	Committed(r *actor.Run, c *actor.Commit)
}

// Writer writes the records of the partition's runs.
type Writer struct {
	env.Owner
	host Host

	history *natsconn.Outbox
	last    uint64          // predicted last sequence of the history stream
	commits int             // records on their way
	head    natsconn.Header // of the record that is being sent
	groups  groupPool
	feed    changeFeed
	quota   env.Quota
}

// New returns that of a new owner, which writes nothing before [Writer.Open].
func New(host Host, o env.Owner) *Writer {
	return &Writer{Owner: o, host: host, head: make(natsconn.Header, 6)}
}

// Open makes the way to the history. Close ends it.
func (w *Writer) Open() (err error) {
	w.history, err = w.Env.Conn.NewOutbox(w.Env.Grouping(w.Partition))
	return err
}

// Close gives up what is on its way.
func (w *Writer) Close() { w.history.Close() }

// Follow says which record of the history is the last: the owner's fence. It is told of with the
// records after it, so that nobody reads it.
func (w *Writer) Follow(fence uint64) {
	w.last, w.feed.from, w.feed.to = fence, fence, fence
}

// Last is the sequence of the last record that was sent.
func (w *Writer) Last() uint64 { return w.last }

// Busy tells whether records are on their way.
func (w *Writer) Busy() bool { return w.commits > 0 }

// Add adds a group with events to what the run's next records hold.
func (w *Writer) Add(r *actor.Run, g actor.Group) {
	g.Positions = r.Positions
	if r.Pending == nil {
		r.Pending = w.groups.take()
	}
	r.Pending = append(r.Pending, g)
}

// Write sends the run's next record: as many of its pending groups as fit one message.
func (w *Writer) Write(r *actor.Run) {
	if !w.host.CanWrite() {
		return
	}
	c := w.batch(r)
	record := &schemas.Record{
		WorkflowID: r.WorkflowID, Run: r.State.Run, First: c.First, Events: c.Events,
		Inbox: c.Positions[intake.Inbox], Signals: c.Positions[intake.Signals],
		Fence: w.host.Fence(), Previous: r.End.Hash, SnapshotSequence: r.End.Snapshot,
	}
	if r.End.Since+len(c.Events) >= w.Env.Options.SnapshotEvents && len(r.Pending) == 0 &&
		!r.State.Closed() {
		if b, err := r.State.Snapshot(); err == nil && len(b)+c.Size < w.Env.BodyLimit() {
			record.Snapshot, c.Snapshot = b, true
		}
	}
	err := schemas.MarshalTo(record, func(body []byte) error {
		hash := sha256.Sum256(body)
		c.Hash, c.Bytes = hash[:], len(body)
		if w.Env.Options.Stats != nil {
			c.Sent = time.Now()
		}
		c.Effects = w.host.HoldEffects(c.Sequence)
		r.Inflight = c
		w.commits++
		w.last = c.Sequence
		w.quota.Bytes += int64(len(body)) // until it is looked at again
		w.history.Send(w.Env.NS.History(w.Partition, r.WorkflowID, r.State.Run), w.headers(r, c),
			body, func(a natsconn.Ack) {
				w.Loop.Post(func() { w.acked(r, c, a) })
			})
		return nil
	})
	if err != nil {
		w.host.Fail("encode a record of %s: %w", r.WorkflowID, err)
	}
}

// batch takes what the run's next record holds off what is pending: as many groups as fit one
// message.
func (w *Writer) batch(r *actor.Run) *actor.Commit {
	c := &actor.Commit{First: r.Pending[0].Events[0].ID, Sequence: w.last + 1}
	n := 0
	for n < len(r.Pending) && (n == 0 || c.Size+r.Pending[n].Size < w.Env.BodyLimit()/2) {
		c.Size += r.Pending[n].Size
		n++
	}
	for _, g := range r.Pending[:n] {
		c.Events = actor.Join(c.Events, g.Events)
		c.Adopt(g)
		c.Positions = g.Positions
	}
	if n < len(r.Pending) {
		r.Pending = r.Pending[n:]
		return c
	}
	w.groups.give(r.Pending)
	r.Pending = nil
	r.Decider.Deferral.Written()
	return c
}

// headers carry the expectation that makes the write safe, and what lists and "nats stream view"
// show without decoding.
func (w *Writer) headers(r *actor.Run, c *actor.Commit) natsconn.Header {
	// Both, always. The stream's sequence alone does not fence a pipeline: a foreign record refuses
	// the one write whose number it took, and the next prediction is right again. The subject's
	// sequence makes a fork of the run impossible all the same; a late write of an old owner is
	// then at worst the run's true next record, and our next write is refused.
	clear(w.head)
	h := w.head
	natsconn.ExpectLastSeq(h, c.Sequence-1)
	if r.Unproved {
		natsconn.ExpectNone(h, w.Env.NS.HistoryOfWorkflow(w.Partition, r.WorkflowID))
	} else {
		natsconn.ExpectLastSubjectSeq(h, r.End.Sequence)
	}
	c.Standing = runs.Describe(h, r.State, c.Events)
	return h
}

// acked is the moment from which the record's events are facts.
func (w *Writer) acked(r *actor.Run, c *actor.Commit, a natsconn.Ack) {
	w.commits--
	if a.Err != nil {
		w.Env.Options.Stats.RecordRefused(refusal(a.Err))
		w.host.Fail("commit of %s: %w", r.WorkflowID, a.Err)
		return
	}
	if a.Seq != c.Sequence {
		w.Env.Options.Stats.RecordRefused(stats.RefusedConflict)
		w.host.Fail("commit of %s: stored at %d, want %d: somebody else writes this stream",
			r.WorkflowID, a.Seq, c.Sequence)
		return
	}
	if !c.Sent.IsZero() {
		w.Env.Options.Stats.Committed(time.Since(c.Sent), len(c.Events), c.Bytes)
	}
	r.Inflight, r.Unproved = nil, false
	r.Committed = c.First + int64(len(c.Events)) - 1
	r.End.Append(c.Sequence, c.Hash, w.Env.Latest(), c.First, len(c.Events), c.Snapshot)
	w.noteChange(r, c)
	w.host.Committed(r, c)
}

// refusal is why a record was not stored, as stats count it.
func refusal(err error) int {
	switch {
	case errors.Is(err, natsconn.ErrWrongSequence):
		return stats.RefusedConflict
	case errors.Is(err, natsconn.ErrFull):
		return stats.RefusedFull
	}
	return stats.RefusedOther
}

package repeats

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// The index of a chain is made from its records, the latest first, until one is older than ten
// minutes, or the chain has begun, or there is no room for more. They are read in ranges of the
// history, which are longer where they have few ids.

const (
	firstRange, longestRange = 256, 1 << 16 // sequences
	// manyFound is how many ids in a range make the next one no longer.
	manyFound = 10_000
)

// readingBack is an index that is being made.
type readingBack struct {
	filter string
	chain  string
	// whose records count; the ones before it are of other chains, until it began
	run  string
	from schemas.Timestamp // older records need not be read
	// sequence of the first that is new enough; 0 if that is not known yet
	first        uint64
	end          uint64 // what is after it has been read
	length       uint64
	found        []foundID // the latest first
	cut          schemas.Timestamp
	reachedFirst bool // of the chain was found
}

type foundID struct {
	placedID
	at schemas.Timestamp
}

// foundRecord is what counts of a record.
type foundRecord struct {
	sequence  uint64
	at        schemas.Timestamp
	run       string
	isFirst   bool
	continued string // the run that it continues, if it begins one
	ids       []execution.RequestID
}

// backwardsFrom begins to make the index of a run's chain, whose records are all in the history.
func (rp *Repeats) backwardsFrom(r *actor.Run, at schemas.Timestamp) *readingBack {
	return &readingBack{
		filter: rp.Env.NS.HistoryOfWorkflow(rp.Partition, r.WorkflowID), chain: r.State.FirstRun(),
		run: r.State.Run, from: at.Add(-RememberFor - schemas.Duration(env.ClockSkew)),
		end: r.End.Sequence, length: firstRange,
	}
}

// readBack makes the index and calls then on the loop.
func (rp *Repeats) readBack(r *actor.Run, b *readingBack, then func(error)) {
	env.ReadAsync(rp.Env, rp.Loop, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, rp.readRange(ctx, b)
	}, func(_ struct{}, err error) {
		switch {
		case err != nil:
			then(err)
		case b.cut == 0 && !b.reachedFirst && b.end >= b.first:
			rp.readBack(r, b, then)
		default:
			rp.enter(r.WorkflowID, b)
			then(nil)
		}
	})
}

// enter enters what was found.
func (rp *Repeats) enter(wid string, b *readingBack) {
	from := b.from
	if b.reachedFirst {
		from = 0
	}
	m := newChain(b.chain, from, b.cut)
	rp.index.enter(wid, m)
	for _, f := range slices.Backward(b.found) {
		rp.index.add(m, f.placedID, f.at)
	}
}

// readRange reads the next range of sequences.
func (rp *Repeats) readRange(ctx context.Context, b *readingBack) error {
	stream := rp.Env.NS.StreamHistory(rp.Partition)
	if b.first == 0 {
		s, err := rp.Env.Reads.FirstSince(ctx, stream, b.filter, b.from.Time())
		switch {
		case errors.Is(err, natsconn.ErrNotFound):
			b.first = b.end + 1
			return nil
		case err != nil:
			return err
		}
		b.first = s.Seq
	}
	start := max(b.first, b.end-min(b.end, b.length)+1)
	var records []foundRecord
	options := natsconn.ReadOptions{
		FilterSubjects: []string{b.filter}, StartSeq: start, EndSeq: b.end,
	}
	err := rp.Env.Reads.Scan(ctx, stream, options, func(s natsconn.Stored) error {
		if f, ok := rp.foundIn(&s); ok {
			records = append(records, f)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read back from record %d: %w", b.end, err)
	}
	before := len(b.found)
	for _, f := range slices.Backward(records) {
		if b.reachedFirst || b.cut != 0 {
			break
		}
		rp.takeBack(b, &f)
	}
	b.end = start - 1
	if len(b.found)-before < manyFound {
		b.length = min(2*b.length, longestRange)
	}
	return nil
}

// takeBack takes the record before those that were taken.
func (rp *Repeats) takeBack(b *readingBack, f *foundRecord) {
	if f.run != b.run {
		return
	}
	for _, id := range slices.Backward(f.ids) {
		b.found = append(b.found, foundID{
			placedID: placedID{hash: rp.index.hash(id), sequence: f.sequence},
			at:       f.at,
		})
	}
	switch {
	case len(b.found) >= rp.index.most:
		b.cut = f.at
	case f.isFirst && f.continued == "":
		b.reachedFirst = true
	case f.isFirst:
		b.run = f.continued
	}
}

// foundIn reads what counts of a record. What is none, or cannot be read, tells nothing; drover
// verify names it.
func (rp *Repeats) foundIn(s *natsconn.Stored) (f foundRecord, ok bool) {
	var record schemas.Record
	if !runs.IsRecord(s) || schemas.Unmarshal(s.Data, &record) != nil {
		return f, false
	}
	f = foundRecord{
		sequence: s.Seq, at: schemas.At(s.Time), run: record.Run, isFirst: record.First == 1,
	}
	for _, e := range record.Events {
		if a, ok := e.Attributes.(*schemas.WorkflowStarted); ok {
			f.continued = a.ContinuedExecutionRun
		}
		for id := range execution.RequestsIn(e.Attributes) {
			f.ids = append(f.ids, id)
		}
	}
	return f, true
}

package broker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// pageRecords is how many records one read of a history asks for, and firstRecords the first one for a page of it.
const (
	pageRecords  = 256
	firstRecords = 8
)

// loaded is a run as it stands in its history.
type loaded struct {
	state       *execution.State
	window      []schemas.Event
	windowFrom  int64
	positions   [2]schemas.Position
	sequence    uint64
	hash        []byte
	snapshot    uint64
	recordIndex recordIndex
	since       int
	complete    bool              // the last record says everything
	at          schemas.Timestamp // of the last record
	strange     *schemas.Event    // the first of a type that this version does not know
	// unread are the signals of the run before that this one is still to begin with.
	unread []schemas.Event
}

// get returns the actor of a workflow id; if there is none yet its latest run begins to load.
func (p *partition) get(wid string) *run {
	r := p.runs[wid]
	if r == nil {
		r = &run{wid: wid, loading: true}
		p.runs[wid] = r
		p.touch(r)
		p.activate(r)
		p.load(r)
		return r
	}
	p.touch(r)
	return r
}

// when runs f once the run is loaded: at once, or later on the loop; not at all if it is set aside before that.
func (p *partition) when(r *run, f func()) {
	switch {
	case r.aside:
	case r.loading:
		r.then = append(r.then, awaited{run: f, patient: true})
	default:
		f()
	}
}

func (p *partition) load(r *run) {
	if r.passive != nil && r.passive.complete {
		p.rehydrate(r)
		return
	}
	known, alone := r.passive, p.singleReplica()
	readAsync(p.b, p.loop, func(ctx context.Context) (*loaded, error) {
		if known != nil {
			return p.b.loadPassive(ctx, p.n, r.wid, known)
		}
		l, err := p.b.loadLatest(ctx, p.n, r.wid, alone)
		if err == nil && l != nil && l.state.Copying() {
			l.unread, err = p.b.loadUnread(ctx, p.n, l.state, alone)
		}
		return l, err
	}, func(l *loaded, err error) {
		if err != nil {
			r.passive = nil // the next try asks the leader
			p.unloaded(r, err)
			return
		}
		if p.isIntact(r) {
			p.ready(r, l)
		}
	})
}

// heartbeatsAnew lets the time for the next heartbeat begin: those of the last owner's time are not known. Of a parked run there were none, or
// it would have stayed in memory: it would never be late if each reading gave it more time.
func heartbeatsAnew(s *execution.State, now schemas.Timestamp) {
	for _, a := range s.Activities {
		if a.Started != 0 && a.Scheduled.HeartbeatTimeout.Limited() {
			a.LastBeat = now
		}
	}
}

const loadRetry = 200 * time.Millisecond

func (p *partition) ready(r *run, l *loaded) {
	r.loading = false
	if l != nil {
		r.state, r.window, r.windowFrom = l.state, l.window, l.windowFrom
		r.positions, r.sequence, r.hash, r.snapshot, r.since = l.positions, l.sequence, l.hash, l.snapshot, l.since
		r.complete, r.at, r.recordIndex = l.complete, l.at, l.recordIndex
		r.committed, r.loaded = l.state.LastID, l.state.LastID
		if r.alarm.strange = r.passive == nil; r.passive == nil {
			heartbeatsAnew(l.state, p.now())
		} else {
			r.alarm.due, r.alarm.seq = r.passive.due, r.passive.alarm
			r.state.Dispatched(r.passive.waits)
			p.remember(r, r.passive.hand)
			r.passive = nil
		}
	}
	p.rejoinBacklog(r)
	p.inheritAsk(r)
	switch { // its owner is gone: before anything else, what it had promised (P-4)
	case r.continues():
		if p.continueAs(r); r.loading {
			return
		}
	case l != nil:
		p.copySignals(r, l.unread)
	}
	p.loadedNow(r)
}

// lane bounds how much of a kind is under way at a time. Who waits is let in in turn.
type lane chan struct{}

func (l lane) enter() { l <- struct{}{} }
func (l lane) leave() { <-l }

// loadUnread reads the signals that a run is still to have from the one that it continues: its owner has died between the two records.
func (b *Broker) loadUnread(ctx context.Context, partition int, s *execution.State, alone bool) ([]schemas.Event, error) {
	wid, before := s.WorkflowID, s.Start.ContinuedExecutionRun
	l, err := b.loadRun(ctx, partition, wid, before, alone)
	if err != nil {
		return nil, err
	}
	var unread []schemas.Event
	if l != nil {
		last := l.state.LastID
		events, _, err := b.events(ctx, partition, wid, before, l.state.Decision.Previous, last, last, 0, nil)
		if err != nil {
			return nil, err
		}
		unread = l.state.Unread(events)
	}
	if len(unread) != s.Start.UnreadSignals {
		return nil, fmt.Errorf("%w: run %s of workflow %q is to begin with %d signals of run %s, which has %d", errDamaged,
			s.Run, wid, s.Start.UnreadSignals, before, len(unread))
	}
	return unread[s.Copied:], nil
}

// readAsync reads on a goroutine of its own and hands the answer to the loop. Reads use a connection of their own: a
// direct get keeps the connection that asked busy.
func readAsync[T any](b *Broker, l *loop, read func(context.Context) (T, error), then func(T, error)) {
	onLane(b, b.readers, l, read, then)
}

// writeAsync is readAsync for what is short, and others wait for: writes of the owner, and the small reads that they rest on. These do not wait for
// loads of runs, of which there may be many thousands, each of many records.
func writeAsync[T any](b *Broker, l *loop, write func(context.Context) (T, error), then func(T, error)) {
	onLane(b, b.writers, l, write, then)
}

func onLane[T any](b *Broker, on lane, l *loop, read func(context.Context) (T, error), then func(T, error)) {
	b.wg.Go(func() {
		on.enter()
		defer on.leave()
		ctx, cancel := context.WithTimeout(b.ctx, readTimeout)
		defer cancel()
		v, err := read(ctx)
		l.post(func() { then(v, err) })
	})
}

const readTimeout = 10 * time.Second

// lastRecord reads the last record of a subject. Whether there is none is decided by the leader of the stream, since a
// follower may not know of a record yet (P-2); alone says that the stream has no follower, and then a direct get asks the
// leader for less than half the price.
func (b *Broker) lastRecord(ctx context.Context, partition int, subj string, alone bool) (*natsconn.Stored, error) {
	if alone {
		return b.reads.LastBySubjectDirect(ctx, b.ns.StreamHistory(partition), subj)
	}
	return b.reads.LastBySubject(ctx, b.ns.StreamHistory(partition), subj)
}

// newest is lastRecord, and what it says; nil if there is none, or it is no record.
func (b *Broker) newest(ctx context.Context, partition int, subj string, alone bool) (*natsconn.Stored, *schemas.Record, error) {
	last, err := b.lastRecord(ctx, partition, subj, alone)
	switch {
	case errors.Is(err, natsconn.ErrNotFound):
		return nil, nil, nil
	case err != nil || !runs.IsRecord(last):
		return nil, nil, err
	}
	r, err := recordIn(last)
	return last, r, err
}

// loadLatest reads the latest run of a workflow id; nil if it never had one. alone is as for lastRecord.
func (b *Broker) loadLatest(ctx context.Context, partition int, wid string, alone bool) (*loaded, error) {
	last, err := b.lastRecord(ctx, partition, b.ns.HistoryOfWorkflow(partition, wid), alone)
	switch {
	case errors.Is(err, natsconn.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case !runs.IsRecord(last):
		return b.loadPast(ctx, partition, wid, last)
	}
	return b.fold(ctx, partition, last)
}

// loadRun reads one run of a workflow id of the partition; nil if there is none.
func (p *partition) loadRun(ctx context.Context, wid, id string) (*loaded, error) {
	return p.b.loadRun(ctx, p.n, wid, id, p.singleReplica())
}

// loadRun reads one run of a workflow id; nil if there is none. alone is as for lastRecord.
func (b *Broker) loadRun(ctx context.Context, partition int, wid, id string, alone bool) (*loaded, error) {
	last, err := b.lastRecord(ctx, partition, b.ns.History(partition, wid, id), alone)
	switch {
	case errors.Is(err, natsconn.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return b.fold(ctx, partition, last)
}

// fold rebuilds a run from its last snapshot on. last is its last record as the leader has it: a shorter answer comes
// from a follower that is behind, and is not used.
func (b *Broker) fold(ctx context.Context, partition int, last *natsconn.Stored) (*loaded, error) {
	from := uint64(1)
	if runs.IsRecord(last) { // else the latest snapshot is not known
		newest, err := recordIn(last)
		if err != nil {
			return nil, err
		}
		if newest.First == 1 || len(newest.Snapshot) > 0 {
			l := &loaded{}
			if err := l.addRecord(newest, last); err != nil {
				return nil, err
			}
			return l.understood()
		}
		if l := b.foldBack(ctx, partition, last, newest); l != nil {
			return l.understood()
		}
		from = max(newest.SnapshotSequence, 1)
	}
	return b.foldUpTo(ctx, partition, last.Subject, from, last.Seq)
}

// foldUpTo folds the records of a run's subject from one sequence to another.
func (b *Broker) foldUpTo(ctx context.Context, partition int, subj string, from, last uint64) (*loaded, error) {
	l := &loaded{}
	for {
		page, _, err := b.reads.BatchGet(ctx, b.ns.StreamHistory(partition), subj, from, pageRecords)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", subj, err)
		}
		for i := range page {
			if page[i].Seq > last {
				return l.understood()
			}
			if err := l.add(&page[i]); err != nil {
				return nil, err
			}
		}
		switch {
		case l.sequence == last:
			return l.understood()
		case len(page) == 0:
			return nil, fmt.Errorf("%w: read %s: record %d is missing behind %d", errDamaged, subj, last, l.sequence)
		}
		from = page[len(page)-1].Seq + 1
	}
}

// add folds one record.
func (l *loaded) add(s *natsconn.Stored) error {
	if !runs.IsRecord(s) {
		l.sequence = s.Seq // the next record is written behind it
		return nil
	}
	r, err := recordIn(s)
	if err != nil {
		return err
	}
	return l.addRecord(r, s)
}

// recordIn decodes a record that nobody else has.
func recordIn(s *natsconn.Stored) (*schemas.Record, error) {
	r := &schemas.Record{}
	if err := decode(s.Data, r); err != nil {
		return nil, fmt.Errorf("%w: record %d of %s: %w", damagedBy(err), s.Seq, s.Subject, err)
	}
	return r, nil
}

// addRecord folds one record, which s holds.
func (l *loaded) addRecord(r *schemas.Record, s *natsconn.Stored) error {
	hash := sha256.Sum256(s.Data)
	if err := l.record(r, hash[:], s.Seq, schemas.At(s.Time)); err != nil {
		return fmt.Errorf("record %d of %s: %w", s.Seq, s.Subject, err)
	}
	return nil
}

// record folds one record: its hash, its sequence, and the time that its events count from.
func (l *loaded) record(r *schemas.Record, hash []byte, seq uint64, at schemas.Timestamp) error {
	if l.hash != nil && !bytes.Equal(r.Previous, l.hash) {
		return fmt.Errorf("%w: it does not follow record %d", errDamaged, l.sequence)
	}
	if len(r.Snapshot) > 0 && l.state == nil && r.First != 1 {
		state, err := execution.Restore(r.Snapshot)
		if err != nil {
			return fmt.Errorf("%w: its snapshot: %w", damagedBy(err), err)
		}
		state.Rebase(r.First, at)
		l.state, l.windowFrom, l.window = state, r.First-1, append(l.window, r.Events...)
	} else {
		if l.state == nil {
			l.state = execution.New(r.WorkflowID, r.Run)
			l.windowFrom = r.First - 1
		}
		if r.First != l.state.LastID+1 {
			return fmt.Errorf("%w: it begins with event %d, want %d", errDamaged, r.First, l.state.LastID+1)
		}
		for _, e := range r.Events {
			l.state.Apply(e)
		}
		l.state.Rebase(r.First, at)
		l.window = append(l.window, r.Events...)
		l.since += len(r.Events)
	}
	if len(r.Snapshot) > 0 {
		l.snapshot, l.since = seq, 0
	} else if r.SnapshotSequence > 0 {
		l.snapshot = r.SnapshotSequence
	}
	for i := range r.Events {
		if _, ok := r.Events[i].Attributes.(*schemas.Unknown); ok && l.strange == nil {
			l.strange = &r.Events[i]
		}
	}
	l.complete = r.First == 1 || len(r.Snapshot) > 0
	l.recordIndex = l.recordIndex.with(seq, l.complete)
	l.window, l.windowFrom = trim(l.window, l.windowFrom, l.state.Decision.Previous)
	l.positions, l.sequence, l.hash, l.at = [2]schemas.Position{r.Inbox, r.Signals}, seq, hash, at
	return nil
}

// understood is what was folded; nil if there was nothing but strays. An open run with events that this version does not know is refused:
// they may mean that it waits for something, or has ended. One that has closed has nothing more to decide.
func (l *loaded) understood() (*loaded, error) {
	if l.state == nil {
		return nil, nil
	}
	if e := l.strange; e != nil && !l.state.Closed() {
		return nil, fmt.Errorf("%w: event %d of workflow %q, run %s, is of the type %q, which this version does not know", errLater, e.ID, l.state.WorkflowID, l.state.Run, e.Type())
	}
	return l, nil
}

// trim drops the events up to previous: every decider has seen them.
func trim(window []schemas.Event, from, previous int64) ([]schemas.Event, int64) {
	if previous <= from {
		return window, from
	}
	n := min(int(previous-from), len(window))
	return append(window[:0:0], window[n:]...), from + int64(n)
}

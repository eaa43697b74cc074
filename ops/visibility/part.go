package visibility

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/ops/index"
	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/ops/spans"
	"github.com/droverhq/drover/schemas"
)

const (
	// ownedEvery is how often it is asked who owns a partition.
	ownedEvery = time.Second
	// checkEvery is how often a stream is compared with what was read of it.
	checkEvery = 30 * time.Second
	// toldWithin is how long a record that somebody waits for may not be told of before it is read.
	toldWithin = 300 * time.Millisecond
	// trimEvery is after how many changes it is seen to that the rows do not take too much.
	trimEvery = 4 << 10
	// againAfter is the pause after a failure.
	againAfter = 2 * time.Second
)

var (
	// errAnother says that the stream is not the one that was read.
	errAnother = errors.New("the stream was made anew")
	errWrong   = errors.New("a row was wrong")
)

// part is the index of a partition. One goroutine follows the stream, and writes the rows.
type part struct {
	x      *Index
	p      int
	stream string

	store    atomic.Pointer[index.Store]
	position atomic.Uint64 // up to this record the rows count
	// goal is the end of the stream that is being read for the first time, 0 before it is known.
	goal  atomic.Uint64
	built atomic.Bool

	wake   chan struct{} // something was told
	wrong  chan struct{} // a row is wrong
	awaits chan struct{} // somebody waits for records up to wanted
	wanted atomic.Uint64

	changes, saved int // of rows, and how many the last snapshot has
	savedAt        time.Time
	// away: rows may be of runs that were purged while nobody listened. comparedAt is when that was
	// last looked for, and comparing how long it took.
	away       bool
	comparedAt time.Time
	comparing  time.Duration

	server string    // the NATS server that was asked
	made   time.Time // of the stream; the zero time before it was asked
	// seen is the latest record that was read with its time.
	seen   uint64
	seenAt time.Time
}

func newPart(x *Index, p int) *part {
	t := &part{
		x: x, p: p, stream: x.o.Namespace.StreamHistory(p),
		wake: make(chan struct{}, 1), wrong: make(chan struct{}, 1),
		awaits: make(chan struct{}, 1),
	}
	t.store.Store(index.New(p))
	return t
}

// want has the rows come to a record, at the latest soon after that is written.
func (t *part) want(seq uint64) {
	for {
		before := t.wanted.Load()
		if before >= seq || t.wanted.CompareAndSwap(before, seq) {
			break
		}
	}
	select {
	case t.awaits <- struct{}{}:
	default:
	}
}

// anew begins again, with nothing read.
func (t *part) anew() {
	t.store.Store(index.New(t.p))
	t.built.Store(false)
	t.goal.Store(0)
	t.position.Store(0)
	t.wanted.Store(0)
	t.made, t.seen, t.seenAt, t.away = time.Time{}, 0, time.Time{}, false
	t.x.follower.Forget(t.p)
}

// run follows the stream until ctx ends. It begins with a snapshot, if there is one, and leaves one.
func (t *part) run(ctx context.Context) {
	t.savedAt = time.Now()
	t.load()
	defer t.save(ctx, true)
	for ctx.Err() == nil {
		err := t.follow(ctx)
		log := t.x.o.Logger.WithField("err", err).WithField("partition", t.p)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, natsconn.ErrStreamRegressed), errors.Is(err, spans.ErrShorter),
			errors.Is(err, errAnother), errors.Is(err, errWrong):
			log.Warn("the index of a partition is built anew")
			t.anew()
			if t.file() != "" {
				_ = os.Remove(t.file()) // if that fails, it is found out about it again
			}
			continue
		case errors.Is(err, natsconn.ErrNoStream): // as while a namespace is deleted
			log.Debug("the index of a partition has nothing to read")
		case err != nil:
			log.Warn("the index of a partition falls back; trying again")
		default:
			continue
		}
		sleep.For(ctx, againAfter)
	}
}

// follow brings the rows to the end of the stream, and keeps them there until something fails.
func (t *part) follow(ctx context.Context) error {
	if err := t.check(ctx); err != nil {
		return err
	}
	if err := t.build(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		way := t.read
		if t.owned() {
			way = t.listen
		}
		if err := way(ctx); err != nil {
			return err
		}
	}
	return nil
}

// build reads what is there. Few partitions do it at a time.
func (t *part) build(ctx context.Context) error {
	select {
	case t.x.building <- struct{}{}:
		defer func() { <-t.x.building }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if !t.built.Load() {
		last, err := t.x.conn.StreamLastSeq(ctx, t.stream)
		if err != nil {
			return err
		}
		t.goal.Store(last)
	}
	if err := t.catchUp(ctx); err != nil {
		return err
	}
	if err := t.compare(ctx); err != nil {
		return err
	}
	t.built.Store(true)
	return nil
}

// catchUp goes on to the end of the stream.
func (t *part) catchUp(ctx context.Context) error {
	err := t.x.follower.Follow(ctx, t.p)
	t.arrived()
	return err
}

// arrived notes how far the rows have come.
func (t *part) arrived() { t.position.Store(t.x.follower.Next[t.p] - 1) }

func (t *part) owned() bool { return slices.Contains(t.x.o.Owned(), t.p) }

// listen hears what the owner in this process tells, while it is one, and reads what it does not
// tell of.
func (t *part) listen(ctx context.Context) error {
	if err := t.catchUp(ctx); err != nil { // what the owner before has written
		return err
	}
	asks, checks := time.NewTicker(ownedEvery), time.NewTicker(checkEvery)
	defer asks.Stop()
	defer checks.Stop()
	var late <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.wake:
			err := t.x.follower.HearOn(ctx, t.p, math.MaxUint64)
			t.arrived()
			if err != nil {
				return err
			}
		case <-t.wrong:
			return errWrong
		case <-t.awaits:
			if late == nil {
				late = time.After(toldWithin)
			}
		case <-late:
			late = nil
			if t.position.Load() >= t.wanted.Load() {
				continue
			}
			if err := t.catchUp(ctx); err != nil {
				return err
			}
		case <-asks.C:
			if !t.owned() {
				return nil
			}
		case <-checks.C:
			if err := t.check(ctx); err != nil {
				return err
			}
			if err := t.catchUp(ctx); err != nil { // a fence, of which nobody tells
				return err
			}
			if err := t.compare(ctx); err != nil {
				return err
			}
			t.save(ctx, false)
		}
	}
}

// read reads what others write, until the owner is in this process.
func (t *part) read(ctx context.Context) error {
	next := &t.x.follower.Next[t.p]
	r, err := t.x.conn.Read(ctx, t.stream,
		natsconn.ReadOptions{StartSeq: *next, HeadersOnly: true}, func(m natsconn.Stored) {
			t.take(ctx, m)
			*next = m.Seq + 1
		})
	if err != nil {
		return err
	}
	defer func() {
		r.Close()
		<-r.Done()
	}()
	asks, checks := time.NewTicker(ownedEvery), time.NewTicker(checkEvery)
	defer asks.Stop()
	defer checks.Stop()
	var late <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.Done():
			return r.Err()
		case <-t.wake: // the owner is here by now: listening is cheaper
			return nil
		case <-t.wrong:
			return errWrong
		case <-t.awaits:
			if late == nil {
				late = time.After(toldWithin)
			}
		case <-late:
			late = nil
			if t.position.Load() >= t.wanted.Load() {
				continue
			}
			// The last records may be gone, which no consumer tells.
			r.Close()
			<-r.Done()
			return t.catchUp(ctx)
		case <-asks.C:
			if t.owned() {
				return nil
			}
		case <-checks.C:
			r.Close()
			<-r.Done()
			if err := t.check(ctx); err != nil {
				return err
			}
			if err := t.compare(ctx); err != nil {
				return err
			}
			t.save(ctx, false)
			return nil
		}
	}
}

// take takes a record that was read.
func (t *part) take(ctx context.Context, m natsconn.Stored) {
	defer func() {
		t.seen, t.seenAt = m.Seq, m.Time
		t.position.Store(m.Seq)
	}()
	if !runs.IsRecord(&m) { // a fence
		return
	}
	l, err := runs.ReadLine(m)
	log := t.x.o.Logger.WithField("subject", m.Subject).WithField("seq", m.Seq)
	if err != nil {
		log.WithField("err", err).Warn(
			"the headers of a record cannot be read, so lists do not show it; drover verify tells more")
		return
	}
	reason := ""
	if l.Status == schemas.StatusFailed {
		reason, err = t.reason(ctx, &l, m.Seq)
		if err != nil && ctx.Err() == nil && !errors.Is(err, natsconn.ErrNotFound) {
			log.WithField("err", err).Warn("why a run has failed cannot be read; lists do not tell")
		}
	}
	t.put(&l, m.Seq, reason)
}

// reason reads why a run has failed. Any replica answers, so one that lags is asked again.
func (t *part) reason(ctx context.Context, l *runs.Line, seq uint64) (reason string, err error) {
	for range reasonTries {
		reason, err = t.x.reasons.ReasonAt(ctx, t.p, l.WorkflowID, l.Run, seq)
		if !errors.Is(err, natsconn.ErrNotFound) || sleep.For(ctx, reasonRest) != nil {
			break
		}
	}
	return reason, err
}

// reasonTries is how often a record that a replica does not have is asked for, and reasonRest the
// pause after it. It may have been purged, too.
const reasonTries, reasonRest = 3, 20 * time.Millisecond

// told takes a change that was told of.
func (t *part) told(c *broker.Change) { t.put(&c.Line, c.Sequence, c.Reason) }

func (t *part) put(l *runs.Line, seq uint64, reason string) {
	store := t.store.Load()
	store.Put(rowOf(l, t.p, seq, reason))
	if t.changes++; t.changes%trimEvery == 0 {
		store.Trim(t.x.o.Memory() / int64(len(t.x.parts)))
	}
}

// rowOf is the row of a run.
func rowOf(l *runs.Line, p int, seq uint64, reason string) *query.Row {
	r := &query.Row{
		WorkflowID: l.WorkflowID, Run: l.Run, Type: l.Type, Version: l.TypeVersion,
		Status: l.Status, Started: l.StartedAt, Closed: l.ClosedAt, Events: l.Events, Tags: l.Tags,
		First: l.FirstRun, Reason: reason, StartMode: string(l.StartMode),
		Attributes: l.Attributes, Partition: p, Sequence: seq,
	}
	if l.Parent != nil {
		r.Parent = l.Parent.WorkflowID
	}
	if l.StartMode == schemas.ModeSchedule {
		r.Schedule = l.Attributes["schedule"]
	}
	if r.Closed != 0 { // one is the owner's clock, the other the server's
		r.Closed = max(r.Closed, r.Started)
	}
	return r
}

// check compares the stream with what was read of it.
func (t *part) check(ctx context.Context) error {
	conn := t.x.conn
	if id := conn.NATS().ConnectedServerId(); id != "" && id != t.server {
		before := t.server
		t.server = id
		if before != "" && conn.NATS().ConnectedClusterName() == "" {
			return errAnother // it may have lost its end, and have another one by now
		}
	}
	made, err := conn.StreamMade(ctx, t.stream)
	switch {
	case err != nil:
		return err
	case t.made.IsZero():
		t.made = made
	case !t.made.Equal(made):
		return errAnother
	}
	if err := conn.CheckRegressed(ctx, t.stream, t.seen, t.seenAt); err != nil {
		return err
	}
	last := t.position.Load()
	if last == t.seen {
		return nil
	}
	if err := conn.CheckRegressed(ctx, t.stream, last, time.Time{}); err != nil {
		return err
	}
	switch m, err := conn.GetSeq(ctx, t.stream, last); { // a witness for the next time
	case err == nil:
		t.seen, t.seenAt = last, m.Time
	case !errors.Is(err, natsconn.ErrNotFound):
		return err
	}
	return nil
}

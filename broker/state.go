package broker

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/states"
	"github.com/droverhq/drover/schemas"
)

// A state key is one key of a bucket, and is changed by compare-and-set alone: the owner of the run that asks reads it from the
// leader, changes the record (package states), and writes it if nobody has done so meanwhile. Then it tells the run.
//
// A crash between the write and its answer in the history leaves the request open, and the next owner repeats it. The record names
// every write that may be repeated, so it happens once, however many others have written since (ADR 0029). A write is taken out
// of the record when the answer is in the history: see stateSettled.
//
// An owner that was suspended must not act on what it remembers: as with locks, its claim is checked before each try, and its
// fence before each that repeats another, behind the read of the key.

// stateOp is what one run wants of a state key.
type stateOp struct {
	wid     string
	asked   execution.Asked
	op      states.Op
	heal    bool // nobody has just decided this: a former owner may have done it
	tickets []*completion
	result  states.Result
}

// stateKey is a key that is being used, or of which this owner knows that writes are settled.
type stateKey struct {
	key, name, scope string
	busy             bool
	queue            []*stateOp
	at               []*stateOp // what is being carried out
	tries            int        // that were refused in a row
	tidy             bool       // settled writes are to be taken out, although nobody writes
	tidied           bool       // by what is being carried out
	quiet            *timer     // looks whether settled writes are left
	settled          map[schemas.StateWrite]bool
	judged           map[schemas.StateWrite]bool // writes of former owners that are being looked up
}

const (
	// settledMany is how many settled writes are left in a key for the next writer to take out.
	settledMany = 8
	// settledQuiet is how long they are left there for one.
	settledQuiet = 5 * time.Second
	// stateMarkerTTL is how long the marker of a deleted key stays: a write that is on its way for so long would not see that the
	// key was there in the meantime.
	stateMarkerTTL = time.Hour
)

// stateRead is a key as its leader has it.
type stateRead struct {
	record *schemas.StateRecord // nil: absent
	rev    uint64
}

// askState carries out the request of a StateRequested; t is held until its answer is in the history.
func (p *partition) askState(r *run, q *execution.StateRequest, t *completion, heal bool) {
	a := q.Request
	asked := execution.Asked{Run: r.state.Run, EventID: q.EventID}
	if lock, ok := schemas.StateLock(a.Key); ok {
		t.Retain()
		p.askLock(&lockAsk{wid: r.wid, asked: asked, lock: lock, scope: a.Scope, clear: a.Decision == schemas.DecideClearState, at: q.At, heal: heal, completion: t})
		return
	}
	require, err := schemas.ParseRequire(a.Require)
	if err != nil { // the core has read it
		p.log.WithError(err).WithField("workflow", r.wid).Error("a requirement cannot be read")
		return
	}
	op := &stateOp{wid: r.wid, asked: asked, heal: heal, op: states.Op{
		Decision: a.Decision, Value: a.Value, Require: require,
		Write: schemas.StateWrite{WorkflowID: r.wid, Run: asked.Run, EventID: asked.EventID},
	}}
	if t != nil {
		t.Retain()
		op.tickets = append(op.tickets, t)
	}
	k := p.stateKeyOf(a.Key, a.Scope)
	k.queue = append(k.queue, op)
	p.useState(k)
}

func (p *partition) stateKeyOf(name, scope string) *stateKey {
	key := schemas.StateKey(scope, name)
	k := p.stateKeys[key]
	if k == nil {
		k = &stateKey{key: key, name: name, scope: scope}
		p.stateKeys[key] = k
	}
	return k
}

// useState begins with what waits for a key, unless it is being used.
func (p *partition) useState(k *stateKey) {
	if !k.busy {
		k.busy = true
		p.sends++
		p.tryState(k)
	}
}

// tryState begins a try: it reads the key, and makes sure that the partition is still ours.
func (p *partition) tryState(k *stateKey) {
	if !p.canWrite() {
		return // the next owner repeats it
	}
	k.at, k.queue = append(k.at, k.queue...), nil
	careful := k.tries > 0 || k.tidy || slices.ContainsFunc(k.at, func(op *stateOp) bool { return op.heal })
	writeAsync(p.b, p.loop, func(ctx context.Context) (stateRead, error) {
		got, err := p.b.readState(ctx, k.key)
		if err == nil && careful {
			err = p.fenced(ctx)
		}
		return got, err
	}, func(got stateRead, err error) {
		switch {
		case err == nil:
			p.writeState(k, got)
		case errors.Is(err, ErrNewerFence):
			p.fail("use the state key %q: %w", k.key, err)
		case unreadable(err):
			p.log.WithError(err).WithField("key", k.key).Warn("a key of the bucket of state keys cannot be read; mend or delete it, and those who want it go on")
			p.tryStateAgain(k, badLockRetry)
		default:
			p.log.WithError(err).WithField("key", k.key).Warn("a state key cannot be read; trying again")
			p.tryStateAgain(k, keyPatience(k.tries))
		}
	})
}

func (p *partition) tryStateAgain(k *stateKey, delay time.Duration) {
	k.tries++
	p.loop.after(delay, func() { p.tryState(k) })
}

// readState reads a key from its leader.
func (b *Broker) readState(ctx context.Context, key string) (got stateRead, err error) {
	value, rev, err := b.reads.KVLast(ctx, b.ns.BucketState(), key)
	if err != nil || value == nil {
		return stateRead{rev: rev}, err
	}
	r, err := schemas.ParseState(key, value)
	if err == nil {
		states.Read(r, rev)
	}
	return stateRead{record: r, rev: rev}, err
}

// writeState carries out what runs want of what was read, and writes it if that is still what the key holds.
func (p *partition) writeState(k *stateKey, got stateRead) {
	if !p.canWrite() {
		return
	}
	next := got.record
	if next == nil {
		next = states.Fresh(k.name, k.scope)
	}
	changed := p.applyStates(k, next)
	if !changed {
		p.stateDone(k, next, got.rev)
		return
	}
	body, err := schemas.MarshalJSON(next)
	if err != nil {
		p.fail("encode the state key %q: %w", k.key, err)
		return
	}
	if len(body) > p.b.bodyLimit() {
		p.log.WithField("key", k.key).WithField("bytes", len(body)).Warn("a state key has too many writes that are not settled; trying again")
		p.tryStateAgain(k, keyPatience(k.tries))
		return
	}
	bucket := p.b.ns.BucketState()
	writeAsync(p.b, p.loop, func(ctx context.Context) (uint64, error) {
		if states.Empty(next) {
			return p.b.conn.KVExpunge(ctx, bucket, k.key, got.rev, stateMarkerTTL)
		}
		return p.b.conn.KVUpdate(ctx, bucket, k.key, body, got.rev, 0)
	}, func(rev uint64, err error) {
		if err == nil {
			p.stateDone(k, next, rev)
			return
		}
		k.tidy = true // what this try would have taken out is still there
		switch {
		case errors.Is(err, natsconn.ErrWrongSequence), errors.Is(err, natsconn.ErrInFlight):
			p.tryStateAgain(k, casPause+rand.N(casPause))
		default:
			p.log.WithError(err).WithField("key", k.key).Warn("a state key cannot be written; trying again")
			p.tryStateAgain(k, keyPatience(k.tries))
		}
	})
}

// applyStates changes the record as the runs want, and takes out what is settled if it is written anyway, or if that is wanted.
func (p *partition) applyStates(k *stateKey, next *schemas.StateRecord) (changed bool) {
	now := p.now()
	if k.tidy || len(next.Unsettled) >= schemas.MaxStateWrites {
		k.tidy, k.tidied = false, true
		changed = states.Settle(next, k.knows)
	}
	for _, op := range k.at {
		r := p.runs[op.wid]
		if r != nil && r.live() && !wantsState(r, op.asked) {
			op.result = states.Result{} // it has closed meanwhile
			continue
		}
		op.result = states.Do(next, &op.op, now)
		changed = op.result.Changed || changed
	}
	if changed {
		states.Settle(next, k.knows)
	}
	return changed
}

// wantsState tells whether a request has no answer, as far as the run in memory goes.
func wantsState(r *run, asked execution.Asked) bool {
	return r.state.Run == asked.Run && r.state.Requests[asked.EventID] != nil
}

// knows tells whether a write is settled, as far as this owner knows.
func (k *stateKey) knows(w *schemas.StateWrite) bool { return k.settled[nameOf(w)] }

// nameOf is a write without its revision.
func nameOf(w *schemas.StateWrite) schemas.StateWrite {
	return schemas.StateWrite{WorkflowID: w.WorkflowID, Run: w.Run, EventID: w.EventID}
}

// stateDone tells the runs what became of what they asked, and goes on with what has come meanwhile.
func (p *partition) stateDone(k *stateKey, r *schemas.StateRecord, rev uint64) {
	done := k.at
	k.at, k.tries = nil, 0
	p.forgetSettled(k, r)
	full := false
	for _, op := range done {
		a := execution.Answered{Asked: op.asked, Value: op.result.Value, Revision: op.result.Revision}
		if op.result.Unstored {
			a.Revision = rev
		}
		switch op.result.Outcome {
		case states.Done:
		case states.Refused:
			a.Cause = schemas.CauseRequirement
		case states.Full:
			full = true
			k.queue = append(k.queue, op)
			continue
		default:
			op.release()
			continue
		}
		p.tellState(k, op, a)
	}
	p.judgeWrites(k, r)
	switch {
	case full:
		p.log.WithField("key", k.key).Warn("a state key has as many writes that are not settled as it can hold; trying again")
		p.tryStateAgain(k, keyPatience(k.tries))
	case len(k.queue) > 0 || k.tidy:
		p.tryState(k)
	default:
		k.busy = false
		p.sends--
		p.dropState(k)
	}
}

func (op *stateOp) release() {
	watermark.Release(op.tickets)
	op.tickets = nil
}

// tellState lets a run know what became of its request. The request keeps its place until the answer is in the history.
func (p *partition) tellState(k *stateKey, op *stateOp, m execution.Answered) {
	r := p.get(op.wid)
	p.whenKept(r, func() {
		if !r.live() {
			op.release()
			return
		}
		p.deliver(r, &message{wid: op.wid, event: m, at: p.now(), log: noLog, body: m.Value, refuse: op.release, answer: func(*run, []schemas.Event) {
			op.release()
			if op.op.Decision != schemas.DecideGetState && m.Cause == "" {
				p.stateSettled(k.name, k.scope, op.op.Write)
			}
		}})
	}, op.release)
}

package locking

import (
	"context"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/states"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/requirement"
)

// A state key is one key of a bucket, and is changed by compare-and-set alone (package keyed): the
// owner of the run that asks reads it from the leader, changes the record (package states), and
// writes it if nobody has done so meanwhile. Then it tells the run.
//
// A crash between the write and its answer in the history leaves the request open, and the next
// owner repeats it. The record names every write that may be repeated, so it happens once, however
// many others have written since (ADR 0029). A write is taken out of the record when the answer is
// in the history: see stateSettled.

// stateOp is what one run wants of a state key.
type stateOp struct {
	name, scope string // of the key
	wid         string
	asked       execution.Asked
	op          states.Op
	completion  *watermark.Completion
	result      states.Result
}

// stateKeys are the state keys that runs of a partition use.
type stateKeys struct {
	p     *Keys
	queue *keyed.Queue[*stateOp, schemas.StateRecord]
	// known is what this owner knows of the writes in the records, by key.
	known map[string]*stateKey
}

func newStateKeys(ks *Keys) *stateKeys {
	s := &stateKeys{p: ks, known: make(map[string]*stateKey)}
	s.queue = keyed.New(keyHost{ks}, s)
	return s
}

// stateKey is what this owner knows of the writes in a key.
type stateKey struct {
	key, name, scope string
	writes           keyed.Writes
	quiet            *loop.Timer // looks whether settled writes are left
}

// settledQuiet is how long settled writes are left in a key for the next writer to take out.
const settledQuiet = 5 * time.Second

// AskState carries out the request of a StateRequested; t is held until its answer is in the
// history.
func (ks *Keys) AskState(
	r *actor.Run, q *execution.StateRequest, t *watermark.Completion, heal bool,
) {
	a := q.Request
	asked := execution.Asked{Run: r.State.Run, EventID: q.EventID}
	if lock, ok := schemas.StateLock(a.Key); ok {
		t.Retain()
		ks.askLock(&lockAsk{
			wid: r.WorkflowID, asked: asked, lock: lock, scope: a.Scope,
			clear: a.Decision == schemas.DecideClearState, at: q.At, heal: heal, completion: t,
		})
		return
	}
	require, err := requirement.Parse(a.Require)
	if err != nil { // the core has read it
		ks.Log.WithError(err).WithField("workflow", r.WorkflowID).
			Error("a requirement cannot be read")
		return
	}
	op := &stateOp{
		name: a.Key, scope: a.Scope, wid: r.WorkflowID, asked: asked, completion: t,
		op: states.Op{
			Decision: a.Decision, Value: a.Value, Require: require,
			Write: schemas.StateWrite{
				WorkflowID: r.WorkflowID,
				Run:        asked.Run,
				EventID:    asked.EventID,
			},
		},
	}
	t.Retain()
	ks.states.queue.Add(schemas.StateKey(a.Scope, a.Key), op, heal)
}

// of returns what is known of a key, and begins to remember it.
func (s *stateKeys) of(name, scope string) *stateKey {
	key := schemas.StateKey(scope, name)
	k := s.known[key]
	if k == nil {
		k = &stateKey{key: key, name: name, scope: scope}
		s.known[key] = k
	}
	return k
}

// drop forgets a key of which there is nothing to remember.
func (s *stateKeys) drop(k *stateKey) {
	if k.writes.Idle() && k.quiet == nil && s.known[k.key] == k {
		delete(s.known, k.key)
	}
}

// Name is part of [keyed.Bucket].
func (s *stateKeys) Name() string { return "state key" }

// Advice is part of [keyed.Bucket].
func (s *stateKeys) Advice(err error) string {
	if env.Undecodable(err) {
		return "a key of the bucket of state keys cannot be read; mend or delete it, and those who want it go on"
	}
	return ""
}

// Empty is part of [keyed.Bucket].
func (s *stateKeys) Empty(r *schemas.StateRecord) bool { return states.Empty(r) }

// Pending tells whether settled writes are to be taken out although nobody writes.
func (s *stateKeys) Pending(key string) bool {
	k := s.known[key]
	return k != nil && k.writes.Pending()
}

// stateRead is a state key as its leader has it.
type stateRead = keyed.Entry[schemas.StateRecord]

// Read reads a key from its leader.
func (s *stateKeys) Read(ctx context.Context, key string, _ []*stateOp) (got stateRead, err error) {
	value, rev, err := s.p.Env.Reads.KVLast(ctx, s.p.Env.NS.BucketState(), key)
	got = stateRead{Revision: rev}
	if err != nil || value == nil {
		return got, err
	}
	if got.Record, err = schemas.ParseState(key, value); err == nil {
		states.Read(got.Record, rev)
	}
	return got, err
}

// Write is part of [keyed.Bucket]. A record that is too large waits until writes in it are settled.
func (s *stateKeys) Write(
	ctx context.Context, key string, body []byte, rev uint64,
) (uint64, error) {
	if len(body) > s.p.Env.BodyLimit() {
		return 0, fmt.Errorf("it has too many writes that are not settled: %d bytes", len(body))
	}
	return s.p.Env.WriteKey(ctx, s.p.Env.NS.BucketState(), key, body, rev)
}

// Apply changes the record as the runs want, and takes out what is settled if it is written anyway,
// or if that is wanted.
func (s *stateKeys) Apply(
	key string, ops []*stateOp, got stateRead,
) (next *schemas.StateRecord, changed bool) {
	k, ks := s.known[key], s.p
	if k == nil {
		k = s.of(ops[0].name, ops[0].scope)
	}
	if next = got.Record; next == nil {
		next = states.Fresh(k.name, k.scope)
	}
	changed = k.writes.Begin(next)
	now := ks.host.Now()
	for _, op := range ops {
		r := ks.host.InMemory(op.wid)
		if r != nil && r.Live() && !wantsState(r, op.asked) {
			op.result = states.Result{} // it has closed meanwhile
			continue
		}
		op.result = states.Do(next, &op.op, now)
		changed = op.result.Changed || changed
	}
	if changed {
		k.writes.TakeOut(next)
	}
	return next, changed
}

// wantsState tells whether a request has no answer, as far as the run in memory goes.
func wantsState(r *actor.Run, asked execution.Asked) bool {
	return r.State.Run == asked.Run && r.State.Requests[asked.EventID] != nil
}

// Done tells the runs what became of what they asked.
func (s *stateKeys) Done(key string, ops []*stateOp, e stateRead, _ bool) (again []*stateOp) {
	k := s.known[key]
	k.writes.End(e.Record)
	for _, op := range ops {
		a := execution.Answered{
			Asked: op.asked, Value: op.result.Value, Revision: op.result.Revision,
		}
		if op.result.Unstored {
			a.Revision = e.Revision
		}
		switch op.result.Outcome {
		case states.Done:
			s.p.tellState(op, a)
		case states.Refused:
			a.Cause = schemas.CauseRequirement
			s.p.tellState(op, a)
		case states.Full:
			again = append(again, op)
		default:
			op.release()
		}
	}
	s.p.judgeWrites(k, e.Record)
	if len(again) > 0 {
		s.p.Log.WithField("key", key).
			Warn("a state key has as many writes that are not settled as it can hold; trying again")
	}
	s.drop(k)
	return again
}

func (op *stateOp) release() {
	op.completion.Release()
	op.completion = nil
}

// tellState lets a run know what became of its request. The request keeps its place until the
// answer is in the history.
func (ks *Keys) tellState(op *stateOp, m execution.Answered) {
	r := ks.host.Get(op.wid)
	ks.host.WhenKept(r, func() {
		if !r.Live() {
			op.release()
			return
		}
		ks.host.Deliver(r, &actor.Message{
			WorkflowID: op.wid, Event: m, At: ks.host.Now(), Log: intake.None, Body: m.Value,
			Refuse: op.release,
			Answer: func(*actor.Run, []schemas.Event) {
				op.release()
				if op.op.Decision != schemas.DecideGetState && m.Cause == "" {
					ks.stateSettled(op.name, op.scope, op.op.Write)
				}
			},
		})
	}, op.release)
}

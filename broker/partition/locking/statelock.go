package locking

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/schemas"
)

// The state keys lock-NAME are views of locks. To set one is a try to take the lock, which goes the
// way of the locks. Here are the other two: to read who holds it, and to break it.

// lockAsk is a GetState or ClearState of a key lock-NAME.
type lockAsk struct {
	wid         string
	asked       execution.Asked
	lock, scope string
	clear       bool
	at          schemas.Timestamp // of the request
	heal        bool              // a former owner may have done it
	completion  *watermark.Completion
	tries       int
	seen        bool                // who holds the lock
	notified    []schemas.LockPlace // holders that were asked to let go
}

const (
	// lockLook is how soon it is looked whether a holder has let go; the pauses grow to
	// lockLookMost.
	lockLook     = 20 * time.Millisecond
	lockLookMost = time.Second
)

// askLock reads who holds a lock, or breaks it. A request to break it is for those who held it when
// it was made: one that is repeated after a crash must not take the lock from the next holder. An
// owner that leaves does not wait for it: the next one asks again.
func (ks *Keys) askLock(q *lockAsk) {
	if !ks.host.CanWrite() {
		return // the next owner repeats it
	}
	env.WriteAsync(ks.Env, ks.Loop, func(ctx context.Context) (keyed.Lock, error) {
		return ks.Env.ReadLock(ctx, schemas.LockKey(q.scope, q.lock))
	}, func(got keyed.Lock, err error) {
		var holders []schemas.LockPlace
		switch {
		case err != nil:
			ks.Log.WithError(err).WithField("lock", q.lock).WithField("scope", q.scope).
				Warn("a lock cannot be read; trying again")
			if env.Undecodable(err) {
				ks.askLockAgain(q, keyed.MendPause)
			} else {
				ks.askLockAgain(q, env.EffectRetry)
			}
			return
		case got.Record != nil:
			holders = got.Record.Holders
		}
		if !q.clear {
			ks.lockAsked(q, execution.Answered{
				Asked: q.asked, Value: holderOf(holders, q.wid), Revision: got.Revision,
			})
			return
		}
		ks.breakHolders(q, holders)
	})
}

func (ks *Keys) askLockAgain(q *lockAsk, delay time.Duration) {
	q.tries++
	ks.Loop.After(delay, func() { ks.askLock(q) })
}

// holderOf is what the key lock-NAME shows to a run: the id of the workflow that holds the lock,
// its own before others; nothing if it is free.
func holderOf(holders []schemas.LockPlace, own string) schemas.Payload {
	if len(holders) == 0 {
		return nil
	}
	wid := holders[0].WorkflowID
	if slices.ContainsFunc(holders, func(h schemas.LockPlace) bool { return h.WorkflowID == own }) {
		wid = own
	}
	value, err := schemas.JSONPayload(wid)
	if err != nil {
		return schemas.Text(wid)
	}
	return value
}

// breakHolders asks the owners of those who held the lock when the request was made to take it from
// them, and waits until they have it no more.
func (ks *Keys) breakHolders(q *lockAsk, holders []schemas.LockPlace) {
	r := ks.host.InMemory(q.wid)
	if r != nil && r.Live() && !wantsState(r, q.asked) {
		ks.lockAsked(q, execution.Answered{Asked: q.asked})
		return
	}
	if !q.seen {
		q.seen = true
		for _, h := range holders {
			if !q.heal || h.Since < q.at {
				q.notified = append(q.notified, h)
				ks.breakHolder(q, &h)
			}
		}
	}
	known := func(h schemas.LockPlace) bool {
		return slices.ContainsFunc(q.notified, func(t schemas.LockPlace) bool { return t.Is(&h) })
	}
	if q.tries > 0 && q.tries%4 == 0 {
		// who had not been told that it holds the lock let the request pass
		for _, h := range holders {
			if known(h) {
				ks.breakHolder(q, &h)
			}
		}
	}
	if !slices.ContainsFunc(holders, known) {
		ks.lockAsked(q, execution.Answered{Asked: q.asked})
		return
	}
	ks.askLockAgain(q, min(lockLook*time.Duration(q.tries+1), lockLookMost))
}

// breakHolder asks as an operator would. The request has an id, so that a repeat cannot take the
// lock from the same workflow when it holds it again (P-5).
func (ks *Keys) breakHolder(q *lockAsk, h *schemas.LockPlace) {
	ks.host.Tell(h.WorkflowID, actor.KindBreakLock, &schemas.ExecutionRequest{
		V: schemas.Version, WorkflowID: h.WorkflowID, Run: h.Run, Lock: q.lock, Scope: q.scope,
		RequestID: fmt.Sprintf("%s.%d", q.asked.Run, q.asked.EventID),
		Reason: fmt.Sprintf(
			"workflow %q has cleared the key %s",
			q.wid,
			schemas.LockState(q.lock),
		),
		Identity: "workflow " + q.wid,
		Origin: &schemas.RequestOrigin{
			Execution:        &schemas.Execution{WorkflowID: q.wid, Run: q.asked.Run},
			ScheduledEventID: q.asked.EventID, Cause: schemas.CauseClearedByWorkflow,
			FirstRun: h.Chain(),
		},
	})
}

// lockAsked tells the run.
func (ks *Keys) lockAsked(q *lockAsk, m execution.Answered) {
	r := ks.host.Get(q.wid)
	ks.host.WhenKept(r, func() {
		if !r.Live() {
			q.completion.Release()
			return
		}
		ks.host.Deliver(r, &actor.Message{
			WorkflowID: q.wid, Event: m, At: ks.host.Now(), Log: intake.None, Body: m.Value,
			Refuse: q.completion.Release,
			Answer: func(*actor.Run, []schemas.Event) { q.completion.Release() },
		})
	}, q.completion.Release)
}

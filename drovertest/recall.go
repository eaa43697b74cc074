package drovertest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// decidersOf is the part of a worker that decides, or nil.
func decidersOf(w Worker) *decider.Worker {
	switch w := w.(type) {
	case *decider.Worker:
		return w
	case interface{ DeciderWorker() *decider.Worker }:
		return w.DeciderWorker()
	}
	return nil
}

// forget has workflow code leave the memory after some decisions.
func (e *Env) forget(w Worker) {
	d := decidersOf(w)
	if d == nil || e.o.Seed < 0 {
		return
	}
	for _, typ := range d.Types() {
		if code, ok := d.Decider(typ).(interface {
			EvictIf(func(*decider.Task) bool)
		}); ok {
			e.seeded = true
			code.EvictIf(e.coin)
		}
	}
}

// coin depends on the seed and the place in the history alone: goroutines come in any order.
func (e *Env) coin(t *decider.Task) bool {
	h := fnv.New64a()
	fmt.Fprint(h, t.Type(), " ", t.StartedID())
	return rand.New(rand.NewPCG(uint64(e.o.Seed), h.Sum64())).IntN(2) == 0
}

// replay compares the histories of workflow code with the code that the workers of the test have.
func (e *Env) replay(ctx context.Context, runs []*record) {
	store := payloads.NewStore(e.conn, e.ns, nil)
	resolve := func(p schemas.Payload) (schemas.Payload, error) { return fetch(ctx, store, p) }
	for _, r := range runs {
		code := e.code(r.events)
		if len(code) == 0 {
			continue
		}
		h, err := r.events.whole(resolve)
		if err == nil {
			err = replay(ctx, h, e.o.Replays, code...)
		}
		if err != nil {
			e.t.Errorf("drovertest: workflow %q was replayed with what its history has: %v",
				r.workflowID, err)
		}
	}
}

// code is all code that the workers of the test have for a history, the newest first.
func (e *Env) code(h History) (code []decider.Decider) {
	started := decider.Started(h)
	if started == nil {
		return nil
	}
	for _, w := range slices.Backward(e.runningWorkers) {
		if d := decidersOf(w.worker); d != nil {
			code = append(code, d.Decider(started.WorkflowType))
		}
	}
	code = slices.DeleteFunc(code, func(d decider.Decider) bool {
		_, ok := d.(decider.Checker)
		return !ok
	})
	if len(code) == 1 { // it has made the history alone
		if d, ok := code[0].(inputsChecker); ok {
			code[0] = unchanged{d}
		}
	}
	return code
}

type inputsChecker interface {
	decider.Decider
	CheckInputs(ctx context.Context, t *decider.Task) error
}

// unchanged is code that has made a history itself: it gives to activities what it gave then.
type unchanged struct{ inputsChecker }

// Check implements [decider.Checker].
func (u unchanged) Check(ctx context.Context, t *decider.Task) error { return u.CheckInputs(ctx, t) }

// whole is the history with payloads in place of references.
func (h History) whole(resolve func(schemas.Payload) (schemas.Payload, error)) (History, error) {
	all := make(History, len(h))
	for n, e := range h {
		var err error
		if all[n], err = schemas.Whole(e, resolve); err != nil {
			return nil, fmt.Errorf("event %d: %w", e.ID, err)
		}
	}
	return all, nil
}

// fetch reads a large payload from the store.
func fetch(ctx context.Context, s *payloads.Store, p schemas.Payload) (schemas.Payload, error) {
	ref, _ := p.Ref()
	var all schemas.Payload
	for cursor, more := "", true; more; more = cursor != "" {
		var data []byte
		var err error
		if data, cursor, err = s.Read(ctx, ref.Object, cursor, int(ref.Size)); err != nil {
			return nil, err
		}
		all = append(all, data...)
	}
	return all, nil
}

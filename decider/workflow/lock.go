package workflow

import (
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// LockOption is [decider.Limit], [decider.Lease] or [decider.Scope].
type LockOption = decider.LockOption

// Held is a lock that the run has.
type Held struct {
	// Fence grows with every holder of the lock. Whatever the lock guards should refuse one that is
	// lower than the highest it has seen: the run may have lost the lock since.
	Fence uint64

	release func()
}

// Lock waits for a lock that runs of the namespace share, in the order in which they ask; coroutines
// of a run have it one after the other. The run has it over every crash, until it is released or the
// run closes. A run that continues it has it as soon as it asks. A refusal is a [*CallError].
func Lock(ctx Context, name string, opts ...LockOption) (*Held, error) {
	a, _ := decider.AcquireLock(name, opts...).Attributes.(*schemas.AcquireLock)
	m := ctx.run.m
	f, err := m.Lock(ctx.scope, a)
	if err == nil {
		err = ended(ctx, name, f)
	}
	if err != nil {
		return nil, err
	}
	v, _ := f.Value()
	fence, _ := v.(uint64)
	return &Held{Fence: fence, release: func() { m.Unlock(a) }}, nil
}

// Release gives the lock back. Further calls do nothing.
func (h *Held) Release() {
	if h.release != nil {
		h.release()
		h.release = nil
	}
}

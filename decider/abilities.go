package decider

import (
	"slices"

	"github.com/droverhq/drover/schemas"
)

// Stopper is a [Decider] that wants to be told when its worker stops, to let go of what it keeps in
// memory: whatever that is, no later task proves it any more (see [Task.Continues]).
//
// Stop is called at the end of each Run, after the last Decide has returned, once for each type and
// source that the decider was registered with. A Decide that ignores the end of its context may
// still run. Run returns after Stop, and may be called again. A panic of Stop is logged.
type Stopper interface{ Stop() }

// Apart is a [Decider] for whose decisions it matters which goroutine they are made on. If Apart
// says true, none is made on a goroutine that has run an activity before, in whatever state that
// has left it: a decision together with an outcome (ADR 0031) then has a goroutine of its own,
// which costs a hand-over.
type Apart interface{ Apart() bool }

// Needs is a [Decider] that needs brokers which can do more than those of the first release. If a
// broker of the namespace lacks something of it, Run ends with [ErrFeatures]; without a broker it
// waits for one.
type Needs interface{ Needs() []schemas.Feature }

// stopped tells a decider that its worker has stopped.
func stopped(d Decider) (err error) {
	defer caught(&err)
	if s, ok := d.(Stopper); ok {
		s.Stop()
	}
	return nil
}

func isApart(d Decider) bool {
	a, ok := d.(Apart)
	return ok && a.Apart()
}

// needs returns what deciders need of brokers.
func needs(deciders map[string]Decider, sources []followed) (all []schemas.Feature) {
	add := func(d Decider) {
		n, ok := d.(Needs)
		if !ok {
			return
		}
		for _, f := range n.Needs() {
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	for _, d := range deciders {
		add(d)
	}
	for _, s := range sources {
		add(s.decider)
	}
	return all
}

package execution

import (
	"errors"
	"fmt"

	"github.com/droverhq/drover/internal/retention"
	"github.com/droverhq/drover/schemas"
)

// How long a run is kept is folded as what it means at the moment: a history that is read again in
// a year, under another default of the namespace, says the same. The janitor judges by it; the run
// itself never looks at it, but for locks.

// Keeping is the retention that the run has asked for, or that it has from its parent; nil if the
// default of the namespace holds.
func (s *State) Keeping() *schemas.RetentionPolicy {
	if s.Retention != nil || s.Start == nil || s.Start.ParentRetention == nil {
		return s.Retention
	}
	up := *s.Start.ParentRetention
	up.Hash = "" // the group is the parent's own
	return &up
}

const lockUnkept = "the retention of the run is disabled, and nobody would know of the lock " +
	"when it is purged: write retention 0 instead"

func (s *State) retentionDisabled() bool {
	p := s.Keeping()
	return p != nil && p.Disabled
}

// expression reads what a decision says.
func expression(a *schemas.SetRetention) (retention.Expr, error) {
	e, err := retention.Parse(a.Retention)
	if err != nil {
		return e, err
	}
	if a.Hash == "" {
		return e, nil
	}
	if e.Hash != "" {
		return e, errors.New("hash: the expression names one too: give it once")
	}
	return e.WithHash(a.Hash)
}

// validateRetention judges the decisions of a reply that say how the run is kept. One that cannot
// be carried out spoils the reply as a whole: it is a mistake of the decider, and its author is
// told at once.
func (s *State) validateRetention(decisions []schemas.Decision) error {
	locked, disables := "", 0
	for _, l := range s.OpenLocks() {
		locked = l.Lock
	}
	for i, d := range decisions {
		switch a := d.Attributes.(type) {
		case *schemas.SetRetention:
			e, err := expression(a)
			if err != nil {
				return fmt.Errorf("decision %d: SetRetention: %w", i+1, err)
			}
			if disables = 0; e.Disabled { // what is said last counts
				disables = i + 1
			}
		case *schemas.AcquireLock:
			locked = a.Lock
		case *schemas.SetState:
			if lock, ok := schemas.StateLock(a.Key); ok {
				locked = lock
			}
		}
	}
	if disables > 0 && locked != "" {
		return fmt.Errorf(
			"decision %d: SetRetention: a run with lock %q cannot disable its retention, since "+
				"nobody would know of the lock: write 0 instead", disables, locked)
	}
	return nil
}

// setRetention carries out a decision that [State.validateRetention] has let pass.
func (st *step) setRetention(a *schemas.SetRetention, completed int64) bool {
	e, err := expression(a)
	if err != nil {
		return true // a reply with it is refused as a whole
	}
	system := retention.Default()
	if st.c.Retention != nil {
		system = *st.c.Retention
	}
	parent := policyOf(st.Start.ParentRetention)
	var next retention.Policy
	if before := policyOf(st.Retention); before != nil {
		next = before.Change(e, parent, system)
	} else {
		next = retention.Start(e, parent, system)
	}
	st.emit(&schemas.RetentionSet{
		Retention: a.Retention, Hash: a.Hash, Policy: wirePolicy(next),
		DeciderCompletedEventID: completed,
	})
	return true
}

// policyOf reads what a history says; nil if it says nothing.
func policyOf(w *schemas.RetentionPolicy) *retention.Policy {
	if w == nil {
		return nil
	}
	return new(retention.ReadPolicy(w.Hash, w.Disk, w.Soft, w.Disabled))
}

func wirePolicy(p retention.Policy) *schemas.RetentionPolicy {
	return &schemas.RetentionPolicy{
		Hash: p.Hash, Disk: p.Disk.String(), Soft: p.Soft.String(), Disabled: p.Disabled,
	}
}

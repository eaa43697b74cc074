package ops

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/nodes"
)

// Sweep is one run of the health task.
type Sweep struct {
	Number  uint64        // claim number of the master
	Nodes   nodes.Sweep   // what became of the nodes
	Seen    int           // claims that were looked at
	Removed []claims.Info // claims that were removed
	// Reverted tasks will run again, Failed ones have failed for good, because their workers were
	// lost.
	Reverted, Failed int
	Err              error // what went wrong, joined; the next sweep tries again
}

// sweep does the steps of the health task in their order. A step that fails keeps none of the
// others from being done.
func (m *Master) sweep(ctx context.Context, l *claims.Lease) Sweep {
	s := Sweep{Number: l.Number()}
	going := func() bool { return ctx.Err() == nil && l.Valid() }
	var errs []error
	for _, step := range []func(context.Context, *claims.Lease, *Sweep) error{m.sweepNodes, m.sweepClaims, m.revert} {
		if !going() {
			break
		}
		if err := step(ctx, l, &s); err != nil {
			errs = append(errs, err)
		}
	}
	s.Err = errors.Join(errs...)
	return s
}

func (m *Master) sweepNodes(ctx context.Context, l *claims.Lease, s *Sweep) (err error) {
	if m.opts.Nodes == nil {
		return nil
	}
	s.Nodes, err = m.opts.Nodes.Sweep(ctx, l.Valid)
	return err
}

// sweepClaims removes expired claims.
func (m *Master) sweepClaims(ctx context.Context, l *claims.Lease, s *Sweep) error {
	list, err := m.opts.Claims.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, i := range list {
		if ctx.Err() != nil || !l.Valid() {
			break
		}
		s.Seen++
		if !i.Expired || i.Key == claims.Master {
			continue
		}
		switch removed, err := m.remove(ctx, l, i); {
		case errors.Is(err, claims.ErrHeld): // somebody has taken it over, which is as good
		case err != nil:
			errs = append(errs, err)
		case removed:
			s.Removed = append(s.Removed, i)
		}
	}
	return errors.Join(errs...)
}

func (m *Master) revert(ctx context.Context, _ *claims.Lease, s *Sweep) (err error) {
	if m.opts.Revert == nil {
		return nil
	}
	if s.Reverted, s.Failed, err = m.opts.Revert(ctx); err != nil {
		return fmt.Errorf("ops: tasks whose workers were lost: %w", err)
	}
	return nil
}

// remove removes one expired claim, a partition's after a fence.
func (m *Master) remove(
	ctx context.Context, l *claims.Lease, i claims.Info,
) (removed bool, err error) {
	if p, ok := claims.ParsePartition(i.Key); ok {
		// The revision of our own last renewal is a good number for the fence: revisions are those
		// of the whole bucket, so it is above the expired claim's if it came later. And the claim
		// still stands at the leader after it was read, so whoever takes the partition next gets a
		// higher one.
		number := l.Revision()
		if m.opts.Fence == nil || number <= i.Revision {
			return false, nil // without a renewal since then: the next sweep does it
		}
		if err := m.opts.Claims.Confirm(ctx, i); err != nil {
			return false, err
		}
		if !l.Valid() {
			return false, nil
		}
		if err := m.opts.Fence(ctx, p, number); err != nil {
			return false, fmt.Errorf("ops: fence for partition %d: %w", p, err)
		}
	}
	return true, m.opts.Claims.Evict(ctx, i)
}

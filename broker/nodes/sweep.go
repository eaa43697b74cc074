package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// Sweep is what one look of the master at all records has changed.
type Sweep struct {
	Seen          int
	NotResponding []string // nodes that were marked
	Removed       []string // nodes whose records were removed, by key if the record cannot be read
}

// Sweep marks the nodes that have been silent for longer than the threshold, and removes records
// that are a day old. It asks valid before each write and ends when that is false. What somebody
// else changes meanwhile is left to the next sweep.
func (r *Registry) Sweep(ctx context.Context, valid func() bool) (Sweep, error) {
	var s Sweep
	all, err := r.read(ctx)
	if err != nil {
		return s, err
	}
	now := r.Now(ctx)
	if now.IsZero() {
		return s, errors.New("nodes: the server did not tell its time: nobody can be judged")
	}
	var errs []error
	for k := range all {
		i := &all[k]
		if !i.Gone {
			s.Seen++
		}
		if !valid() || ctx.Err() != nil {
			break
		}
		if err := r.judge(ctx, &s, i, now); err != nil && !errors.Is(err, ErrChanged) {
			errs = append(errs, err)
		}
	}
	return s, errors.Join(errs...)
}

func (r *Registry) judge(ctx context.Context, s *Sweep, i *Info, now time.Time) error {
	old := now.Sub(i.Stored) >= r.opts.Forget
	switch {
	case i.Gone && old:
		// The mark is of no use any more: a bucket that sees a new name each hour must not grow.
		return r.conn.Purge(ctx, stream, prefix+i.Key, i.Revision+1)
	case i.Gone:
		return nil
	case old:
		if err := r.remove(ctx, i.Key, i.Revision); err != nil {
			return err
		}
		s.Removed = append(s.Removed, nameOf(i))
		r.opts.Logger.WithField("node", nameOf(i)).
			Infof("the record of a node that was silent for %v is removed", r.opts.Forget)
		return nil
	case i.Malformed || i.Status == schemas.NodeNotResponding || r.Alive(i, now):
		return nil
	}
	if err := r.mark(ctx, i); err != nil {
		return err
	}
	s.NotResponding = append(s.NotResponding, i.Node)
	r.opts.Logger.WithField("node", i.Node).Warnf(
		"the node does not respond: it was heard of %v ago",
		now.Sub(i.Stored).Round(time.Millisecond))
	return nil
}

// mark says of a node that it does not respond.
func (r *Registry) mark(ctx context.Context, i *Info) error {
	rec := i.NodeRecord
	rec.Status, rec.Heard, rec.Since = schemas.NodeNotResponding, schemas.At(i.Stored),
		schemas.At(r.clock.Now(time.Now()))
	return changed(r.write(ctx, &rec, i.Revision))
}

// Admit makes every node of a home namespace Ready that is Recovering, but the one with the boot
// except, and names them.
func (r *Registry) Admit(ctx context.Context, namespace, except string) ([]string, error) {
	all, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	var errs []error
	for k := range all {
		i := &all[k]
		if i.Status != schemas.NodeRecovering || i.Namespace != namespace || i.Boot == except {
			continue
		}
		switch ok, err := r.admit(ctx, i); {
		case err != nil:
			errs = append(errs, err)
		case ok:
			names = append(names, i.Node)
		}
	}
	return names, errors.Join(errs...)
}

// admit makes one node Ready, and tells whether it did. A heartbeat may come in between.
func (r *Registry) admit(ctx context.Context, i *Info) (bool, error) {
	for boot := i.Boot; i.Boot == boot && i.Status == schemas.NodeRecovering; {
		rec := i.NodeRecord
		rec.Status, rec.Since = schemas.NodeReady, schemas.At(r.clock.Now(time.Now()))
		err := changed(r.write(ctx, &rec, i.Revision))
		if !errors.Is(err, ErrChanged) {
			return err == nil, err
		}
		if i, err = r.find(ctx, i.Key); err != nil {
			return false, err
		}
	}
	return false, nil
}

// changed makes a refused compare-and-set recognisable.
func changed(_ uint64, err error) error {
	if errors.Is(err, natsconn.ErrWrongSequence) {
		return fmt.Errorf("nodes: %w: %w", ErrChanged, err)
	}
	return err
}

func nameOf(i *Info) string {
	if i.Malformed {
		return i.Key
	}
	return i.Node
}

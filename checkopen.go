package drover

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/logs"
	"github.com/droverhq/drover/schemas"
)

// checked returns the deciders that the worker answers for. refused says why others are left out:
// they do not agree with runs that are open. An err says that the runs cannot be read.
func (w *Worker) checked(ctx context.Context) (served *decider.Worker, refused, err error) {
	if w.opts.CheckOpen <= 0 {
		return w.deciders, nil, nil
	}
	served = w.client.Deciders(nil)
	for _, typ := range w.deciders.Types() {
		d := w.deciders.Decider(typ)
		differs, err := w.checkType(ctx, typ, d)
		if err != nil {
			return nil, nil, err
		}
		if differs != nil {
			log := logs.Or(w.client.log).WithError(differs).WithField("type", typ)
			if !w.opts.ServeDiffering {
				log.Error("workflow code does not agree with an open run: its type is not served")
				refused = errors.Join(refused, fmt.Errorf("workflow %q is not served: %w", typ, differs))
				continue
			}
			log.Error("workflow code does not agree with an open run")
		}
		served.Register(typ, d)
	}
	return served, refused, nil
}

// checkType replays open runs of a type. differs tells of the first that the code does not agree
// with.
func (w *Worker) checkType(
	ctx context.Context, typ string, d decider.Decider,
) (differs, err error) {
	if _, can := d.(decider.Checker); !can {
		return nil, nil
	}
	of := ListOptions{Type: typ, Status: schemas.StatusOpen, Limit: w.opts.CheckOpen}
	for info, err := range w.client.List(ctx, of) {
		if err != nil {
			return nil, err
		}
		h, err := w.history(ctx, info)
		if errors.Is(err, ErrNotFound) { // it has ended meanwhile, and is gone
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := decider.Check(ctx, d, h); err != nil {
			return fmt.Errorf("run %s of %q is open: %w", info.Run, info.WorkflowID, err), nil
		}
	}
	return nil, nil
}

func (w *Worker) history(
	ctx context.Context, info schemas.ExecutionInfo,
) (all []schemas.Event, err error) {
	run := w.client.Run(info.WorkflowID, info.Run)
	for e, err := range run.History(ctx, HistoryOptions{Payloads: true}) {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

package alwayson

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/sleep"
)

// attend looks after the run that is open, or about to be: it has it begun, asks it to end if it is
// to be stopped, and waits for its end. It returns when the record has changed, or should be read
// again.
func (k *keeper) attend(ctx context.Context, r *record, rev uint64) error {
	settled, err := k.begin(ctx, r, rev)
	if err != nil || !settled {
		return err
	}
	if r.Stopped && !r.KeepRun && k.asked != r.StoppedAt {
		if err := k.m.endRun(ctx, r); err != nil {
			return err
		}
		k.asked = r.StoppedAt
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		end end
		err error
	}
	heard := make(chan answer, 1)
	go func() {
		e, err := k.m.follow(ctx, r)
		heard <- answer{e, err}
	}()
	t := time.NewTimer(look)
	defer t.Stop()
	select {
	case a := <-heard:
		if a.err != nil {
			return a.err
		}
		return k.learn(ctx, r, rev, a.end)
	case <-k.wake:
	case <-t.C:
	case <-ctx.Done():
	}
	cancel()
	<-heard
	return nil
}

// end is what was learnt of a run: how it ended, or that another run is open and is to be followed,
// or nothing, if nothing is known of it.
type end struct {
	outcome *drover.Outcome
	other   string
}

// learn writes down what was learnt.
func (k *keeper) learn(ctx context.Context, r *record, rev uint64, e end) error {
	switch {
	case e.outcome != nil:
		return k.closed(ctx, r, rev, func(r *record, now time.Time) { r.ends(e.outcome, now) })
	case e.other != "":
		r.finds(e.other)
		_, err := k.m.put(ctx, r, rev)
		return err
	}
	return k.closed(ctx, r, rev, (*record).loses)
}

// follow waits for the end of the chain that the record's run began. Its first runs may be purged
// while the last one is open.
func (m *Monitor) follow(ctx context.Context, r *record) (end, error) {
	for run := r.Run; ; {
		o, err := m.client.Run(r.id(), run).Wait(ctx)
		if err == nil {
			return end{outcome: o}, nil
		}
		if !errors.Is(err, drover.ErrNotFound) {
			return end{}, err
		}
		d, err := m.client.Run(r.id(), "").Describe(ctx)
		switch {
		case errors.Is(err, drover.ErrNotFound):
			return end{}, nil
		case err != nil:
			return end{}, err
		}
		latest, open := d.Execution.Run, !d.Execution.Status.Closed()
		switch ours := cmp.Or(d.Started.FirstExecutionRun, latest) == r.Run; {
		case ours, r.Found && open:
			if latest == run && sleep.For(ctx, retry) != nil { // it came between the two questions
				return end{}, ctx.Err()
			}
			run = latest
		case open:
			return end{other: latest}, nil
		default:
			return end{}, nil
		}
	}
}

// endRun asks the open run of the id to end, or ends it at once. That none is open is no error.
func (m *Monitor) endRun(ctx context.Context, r *record) error {
	if err := m.before("end " + r.id()); err != nil {
		return err
	}
	run, why := m.client.Run(r.id(), ""), cmp.Or(r.Reason, "stopped")
	var err error
	if r.Terminate {
		err = run.Terminate(ctx, &drover.TerminateOptions{Reason: why})
	} else {
		err = run.Cancel(ctx, why)
	}
	if errors.Is(err, drover.ErrNotFound) || errors.Is(err, drover.ErrClosed) {
		return nil
	}
	return err
}

package alwayson

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// retry is the pause after a step that failed because somebody could not be asked.
	retry = 100 * time.Millisecond
	// patience is how long steps may fail before the log says so: brokers that begin with the
	// master are not there at once.
	patience = 5 * time.Second
)

// crash is the error by which a test ends the monitor.
type crash struct{ error }

func (c *crash) Unwrap() error { return c.error }

func errorsIsCrash(err error) bool {
	_, is := errors.AsType[*crash](err)
	return is
}

// keeper looks after one workflow.
type keeper struct {
	m    *Monitor
	id   string
	wake chan struct{} // the record has changed

	begun string            // the run whose start was answered
	asked schemas.Timestamp // the stop by which the run was asked to end
	told  bool              // that something goes wrong
	// damaged: the log was told that the record cannot be read.
	damaged bool
	wrong   time.Time // since when; zero while nothing does
}

// run does one step after the other, until the workflow is removed or ctx ends.
func (k *keeper) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := k.step(ctx)
		switch {
		case err == nil:
			k.told, k.wrong = false, time.Time{}
		case errors.Is(err, errOvertaken):
		case errors.Is(err, natsconn.ErrNotFound):
			if k.m.leave(k) {
				return
			}
			k.sleep(ctx, 0) // takes the wake
		default:
			if k.wrong.IsZero() {
				k.wrong = time.Now()
			}
			if !k.told && ctx.Err() == nil && time.Since(k.wrong) >= patience {
				k.told = true
				k.m.o.Logger.WithField("workflow", k.id).WithField("err", err).
					Warn("an always-on workflow cannot be looked after for now, trying again")
			}
			_ = sleep.For(ctx, retry) // the loop looks at ctx
		}
	}
}

// sleep waits, but no longer than until the record has changed, or should be read again in any
// case.
func (k *keeper) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(min(d, look))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-k.wake:
	case <-t.C:
	}
}

// step reads the record and does what is next.
func (k *keeper) step(ctx context.Context) error {
	r, rev, err := k.m.load(ctx, k.id)
	if errors.Is(err, errDamaged) { // somebody has to mend it
		if !k.damaged {
			k.damaged = true
			k.m.o.Logger.WithField("workflow", k.id).WithField("err", err).
				Error("an always-on workflow is not looked after")
		}
		k.sleep(ctx, look)
		return nil
	}
	switch {
	case err != nil:
		return err
	case r.Open:
		return k.attend(ctx, r, rev)
	case r.rests():
		k.sleep(ctx, look)
		return nil
	}
	now, err := k.m.now(ctx)
	if err != nil {
		return err
	}
	if left := r.NotBefore.Time().Sub(now); left > 0 {
		k.sleep(ctx, left)
		return nil
	}
	r.begin(k.m.o.Namespace, now)
	if rev, err = k.m.put(ctx, r, rev); err != nil {
		return err
	}
	return k.attend(ctx, r, rev)
}

// closed writes down that nothing is open any more.
func (k *keeper) closed(
	ctx context.Context, r *record, rev uint64, change func(r *record, now time.Time),
) error {
	now, err := k.m.now(ctx)
	if err != nil {
		return err
	}
	before := r.Failures
	change(r, now)
	if _, err := k.m.put(ctx, r, rev); err != nil {
		return err
	}
	if before < ops.FailingAfter && r.Failures >= ops.FailingAfter {
		why := r.Refusal
		if why == "" {
			why = string(r.Status) + " " + r.EndReason
		}
		k.m.note(ctx, ops.OperationAlwaysFailing, r, "", why)
		k.m.o.Logger.WithField("workflow", k.id).WithField("failures", r.Failures).WithField("why",
			why).Warn("an always-on workflow is failing")
	}
	return nil
}

package dispatch

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/watermark"
)

// An owner that dies while it makes a task list may leave a stream without consumers. From then on
// tasks can be stored there, and nobody would miss the consumers but a worker that opens the list.
// The task for which the list was made was not stored; so the next owner, which repeats it, looks.
// Until the list is whole the effects position waits, and with it the same look of whoever comes
// after that owner.
//
// Rejected: to make the list anew for each task that is repeated. That is some eight requests, and
// there may be a thousand lists; this is one.

// EnsureConsumers looks once whether a list to which a task is repeated has its consumers, and has
// it made whole otherwise. recovery is held until it is whole.
func (d *Dispatch) EnsureConsumers(
	r *actor.Run, e execution.Effect, recovery *watermark.Completion,
) {
	f, ok := e.(execution.Dispatch)
	if !ok {
		return
	}
	a := r.State.Activities[f.ScheduledID]
	if a == nil || d.checkedLists[a.Scheduled.List] {
		return
	}
	if d.checkedLists == nil {
		d.checkedLists = make(map[string]bool)
	}
	d.checkedLists[a.Scheduled.List] = true
	recovery.Retain()
	d.checkList(a.Scheduled.List, recovery)
}

func (d *Dispatch) checkList(list string, recovery *watermark.Completion) {
	env.ReadAsync(d.Env, d.Loop, func(ctx context.Context) (full bool, err error) {
		all, err := d.Env.Reads.Consumers(ctx, d.Env.NS.StreamTasks(list))
		if errors.Is(err, natsconn.ErrNoStream) { // whoever publishes to it makes it
			return true, nil
		}
		return err == nil && len(env.Lacking(all)) == 0, err
	}, func(full bool, err error) {
		switch {
		case err != nil:
			d.Log.WithError(err).WithField("list", list).
				Debug("whether the list has its consumers is not known; looking again")
			d.Loop.After(env.LoadRetry, func() { d.checkList(list, recovery) })
		case !full:
			d.Log.WithField("list", list).Info(
				"a task list lacks consumers, as after the end of whoever was making it; it gets them")
			d.openList(list, func() { d.checkList(list, recovery) })
		default:
			recovery.Release()
		}
	})
}

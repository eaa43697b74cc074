package partition

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
)

// An owner that dies while it makes a task list may leave a stream without consumers. From then on
// tasks can be stored there, and nobody would miss the consumers but a worker that opens the list.
// The task for which the list was made was not stored; so the next owner, which repeats it, looks.
// Until the list is whole the effects position waits, and with it the same look of whoever comes
// after that owner.
//
// Rejected: to make the list anew for each task that is repeated. That is some eight requests, and
// there may be a thousand lists; this is one.

// ensureConsumers looks once whether a list to which a task is repeated has its consumers, and has
// it made whole otherwise.
func (p *Partition) ensureConsumers(r *actor.Run, e execution.Effect) {
	d, ok := e.(execution.Dispatch)
	if !ok {
		return
	}
	a := r.State.Activities[d.ScheduledID]
	if a == nil || p.checkedLists[a.Scheduled.List] {
		return
	}
	if p.checkedLists == nil {
		p.checkedLists = make(map[string]bool)
	}
	p.checkedLists[a.Scheduled.List] = true
	p.recovery.Retain()
	p.checkList(a.Scheduled.List)
}

func (p *Partition) checkList(list string) {
	env.ReadAsync(p.b, p.loop, func(ctx context.Context) (full bool, err error) {
		all, err := p.b.Reads.Consumers(ctx, p.b.NS.StreamTasks(list))
		if errors.Is(err, natsconn.ErrNoStream) { // whoever publishes to it makes it
			return true, nil
		}
		return err == nil && len(env.Lacking(all)) == 0, err
	}, func(full bool, err error) {
		switch {
		case err != nil:
			p.log.WithError(err).
				WithField("list", list).
				Debug("whether the list has its consumers is not known; looking again")
			p.loop.After(loadRetry, func() { p.checkList(list) })
		case !full:
			p.log.WithField("list", list).Info(
				"a task list lacks consumers, as after the end of whoever was making it; it gets them")
			p.openList(list, func() { p.checkList(list) })
		default:
			p.recovery.Release()
		}
	})
}

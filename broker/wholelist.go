package broker

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/subject"
)

// An owner that dies while it makes a task list may leave a stream without consumers. From then on tasks can be stored there, and nobody would miss the
// consumers but a worker that opens the list. The task for which the list was made was not stored; so the next owner, which repeats it, looks. Until the
// list is whole the effects position waits, and with it the same look of whoever comes after that owner.
//
// Rejected: to make the list anew for each task that is repeated. That is some eight requests, and there may be a thousand lists; this is one.

// wholeList looks once whether a list to which a task is repeated has its consumers, and has it made whole otherwise.
func (p *partition) wholeList(r *run, e execution.Effect) {
	d, ok := e.(execution.Dispatch)
	if !ok {
		return
	}
	a := r.state.Activities[d.ScheduledID]
	if a == nil || p.whole[a.Scheduled.List] {
		return
	}
	if p.whole == nil {
		p.whole = make(map[string]bool)
	}
	p.whole[a.Scheduled.List] = true
	p.recovery.hold()
	p.lookWhole(a.Scheduled.List)
}

func (p *partition) lookWhole(list string) {
	readAsync(p.b, p.loop, func(ctx context.Context) (whole bool, err error) {
		// The one that is made last.
		_, err = p.b.reads.JetStream().Consumer(ctx, p.b.ns.StreamTasks(list), subject.ConsumerLow)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			return false, nil
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) { // whoever publishes to it makes it
			err = nil
		}
		return true, err
	}, func(whole bool, err error) {
		switch {
		case err != nil:
			p.log.WithError(err).WithField("list", list).Debug("whether the list has its consumers is not known; looking again")
			p.loop.after(loadRetry, func() { p.lookWhole(list) })
		case !whole:
			p.log.WithField("list", list).Warn("a task list has no consumers, as behind the end of whoever made it; it gets them")
			p.openList(list, func() { p.lookWhole(list) })
		default:
			p.recovery.release()
		}
	})
}

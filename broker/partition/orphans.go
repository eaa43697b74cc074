package partition

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
)

// orphanRetry is how soon the end of the inbox is asked for again when the server did not answer.
const orphanRetry = 200 * time.Millisecond

// orphan keeps a signal whose workflow is unknown or closed.
func (p *Partition) orphan(e *actor.Message) {
	e.Kept = true
	p.intake.Early.Add(e.WorkflowID, e)
	p.seekEnd()
}

// seekEnd asks for the end of the inbox if it is not known of all orphans.
func (p *Partition) seekEnd() {
	before, ask := p.intake.Early.Ask()
	if !ask {
		return
	}
	env.WriteAsync(p.Env, p.Loop, func(ctx context.Context) (uint64, error) {
		_, last, err := p.Env.Reads.StreamState(ctx, p.intake.Logs[inboxLog].Stream)
		return last, err
	}, func(last uint64, err error) {
		if err != nil {
			p.intake.Early.Failed()
			p.Loop.After(orphanRetry, p.seekEnd)
			return
		}
		p.intake.Early.Know(before, last)
		p.adopt()
		p.seekEnd()
	})
}

// adopt judges, in order, the orphans whose wait is over.
func (p *Partition) adopt() {
	for {
		e, ok := p.intake.Early.Pop(p.intake.Logs[inboxLog].At())
		if !ok {
			return
		}
		e.Final, e.Kept = true, false
		p.deliver(p.cache.Get(e.WorkflowID), e)
	}
}

// takeOrphans removes and returns the orphans of a workflow id: its run has come.
func (p *Partition) takeOrphans(wid string) []*actor.Message {
	all := p.intake.Early.Take(wid)
	for _, e := range all {
		e.Kept = false
	}
	return all
}

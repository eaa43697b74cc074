package broker

import (
	"context"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/schemas"
)

// How a run has ended its last record says. Nothing before it need be read to tell its result: whoever waits for many runs asks for most of them when
// they are no longer in memory, and to fold them costs a search through all that lies between their records (see record index).

const verbResult = "result"

// inline is a reply without a result or details that have more than so many bytes.
func inline(most int, reply func(any)) func(any) {
	return func(v any) {
		if a, ok := v.(*schemas.ResultResponse); ok {
			if size := len(a.Result) + len(a.Details); size > most {
				a.Result, a.Details, a.Large = nil, nil, size
			}
		}
		reply(v)
	}
}

// nothingKnown tells whether nothing is known of a workflow id: none of its runs is open, or has been looked at lately.
func (p *partition) nothingKnown(wid string) bool {
	if p.runs[wid] != nil {
		return false
	}
	_, passiveRun := p.passive.Find(wid)
	return !passiveRun
}

// readResult answers how a run has ended, without a run the latest, or else does what is to be done if it cannot be told like this.
func (p *partition) readResult(q *schemas.ExecutionRequest, reply func(any), otherwise func()) {
	alone := p.singleReplica()
	readAsync(p.b, p.loop, func(ctx context.Context) (*schemas.ResultResponse, error) {
		return p.b.lastResult(ctx, p.n, q, alone)
	}, func(a *schemas.ResultResponse, err error) {
		if err != nil || a == nil {
			otherwise()
			return
		}
		reply(a)
	})
}

// lastResult is what the last record of a run tells of its end; nil if it does not. alone is as for [runs.Reader.LastRecord].
func (b *Broker) lastResult(ctx context.Context, partition int, q *schemas.ExecutionRequest, alone bool) (*schemas.ResultResponse, error) {
	subj := b.ns.HistoryOfWorkflow(partition, q.WorkflowID)
	if q.Run != "" {
		subj = b.ns.History(partition, q.WorkflowID, q.Run)
	}
	_, r, err := b.runs.Newest(ctx, partition, subj, alone)
	if err != nil || r == nil || len(r.Events) == 0 {
		return nil, err
	}
	end := r.Events[len(r.Events)-1]
	status, closes := schemas.StatusOf(end.Type())
	if !closes || status == schemas.StatusContinuedAsNew { // its follower may be missing
		return nil, nil
	}
	return explain.Result(&execution.State{Run: r.Run, Status: status, Close: &end}), nil
}

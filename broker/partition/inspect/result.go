package inspect

import (
	"context"

	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/schemas"
)

// How a run has ended its last record says. Nothing before it need be read to tell its result:
// whoever waits for many runs asks for most of them when they are no longer in memory, and to fold
// them costs a search through all that lies between their records (see broker/runs).

const VerbResult = "result"

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

// ReadResult answers how a run has ended, without a run the latest, or else does what is to be done
// if it cannot be told like this.
func (ins *Inspector) ReadResult(q *schemas.ExecutionRequest, reply func(any), otherwise func()) {
	alone := ins.host.SingleReplica()
	env.ReadAsync(ins.Env, ins.Loop, func(ctx context.Context) (*schemas.ResultResponse, error) {
		s, err := ins.Env.Histories.Closed(ctx, ins.Partition, q.WorkflowID, q.Run, alone)
		if err != nil || s == nil {
			return nil, err
		}
		return explain.Result(s), nil
	}, func(a *schemas.ResultResponse, err error) {
		if err != nil || a == nil {
			otherwise()
			return
		}
		reply(a)
	})
}

package inspect

import (
	"context"

	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// withAttempts adds to the description of a run how it was replayed.
func (ins *Inspector) withAttempts(d *schemas.DescribeResponse, reply func(any)) {
	env.ReadAsync(ins.Env, ins.Loop, func(ctx context.Context) ([]schemas.ReplayAttempt, error) {
		return ins.Env.Histories.Attempts(
			ctx,
			ins.Partition,
			d.Execution.WorkflowID,
			d.Execution.Run,
		)
	}, func(all []schemas.ReplayAttempt, err error) {
		if err != nil {
			reply(&schemas.AckResponse{V: schemas.Version, Error: env.Unavailable(err)})
			return
		}
		if d.Attempts = all; d.Soft && len(all) > 0 {
			// the history of the run itself is not there to be listed
			d.Attempts = append([]schemas.ReplayAttempt{runs.AttemptOf(&d.Execution)},
				all[:min(len(all), schemas.MaxReplayAttempts-1)]...)
		}
		reply(d)
	})
}

package drover

import (
	"context"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// BulkOptions of [Client.Bulk].
type BulkOptions struct {
	// Filter is another condition that must hold of each run, such as "parent IS NULL". Defaults to
	// none.
	Filter string
	// Rate is how many runs a second are acted on, at most [ops.MaxBulkRate]. The signal
	// [ops.SignalRate] to the job changes it. Defaults to [ops.DefaultBulkRate].
	Rate int
	// Reason goes into the histories. Defaults to none.
	Reason string
	// Signal and Input are the name and the input of the signal that is sent; Input is encoded as
	// in [Client.Start]. For [ops.BulkSignal], which needs a name.
	Signal string
	Input  any
	// From is where replays begin, as in [ReplayOptions]. For [ops.BulkReplay].
	From string
}

// Bulk has one thing done to all runs that a query finds, and returns the run that does it: a job.
// The query is asked once, as in [Client.Query]: what starts later is not acted on. Each run is
// acted on once, whatever crashes meanwhile. nil options mean all defaults.
//
// How far the job is, an [ops.BulkState], is the LatestContext that [Run.Describe] tells, and its
// result: done, nothing to do, refused and why, left. It is canceled and paused as any other run.
//
// Errors: [ErrInvalid], also of a query that cannot be read; [ErrPermission], [ErrUnavailable],
// [ErrTimeout].
func (c *Client) Bulk(
	ctx context.Context, action ops.BulkAction, text string, o *BulkOptions,
) (*Run, error) {
	if o == nil {
		o = &BulkOptions{}
	}
	q := query{verb: "bulk"}
	input, err := encode("input", o.Input)
	if err != nil {
		return nil, newError(q, err)
	}
	req := &ops.BulkRequest{
		V: schemas.Version, Job: "bulk-" + ulid.Make().String(), Action: action, Query: text,
		Filter: o.Filter, Rate: o.Rate, Reason: o.Reason, Name: o.Signal, Input: input,
		From: o.From, Identity: c.name,
	}
	a, err := call(ctx, c, q, req, func(a *ops.BulkResponse) *schemas.Error { return a.Error })
	if err != nil {
		return nil, err
	}
	r := c.Run(a.Job, a.Run)
	r.started = true
	return r, nil
}

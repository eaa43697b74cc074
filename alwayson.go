package drover

import (
	"context"
	"iter"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// AddAlwaysOn has a workflow run all the time: exactly one run of the id of its start is open, and
// the next one is begun within a second after an end. If it is there already, other contents take
// effect with the next start.
//
// Errors: [ErrInvalid], which names the field; [ErrNotFound] or [ErrDeprecated] if the type may not
// be started; [ErrUnavailable], [ErrTimeout].
func (c *Client) AddAlwaysOn(ctx context.Context, w ops.AlwaysOn) (*ops.AlwaysResponse, error) {
	req := &ops.AlwaysAddRequest{V: schemas.Version, AlwaysOn: w, Identity: c.name}
	return c.always(ctx, "alwaysAdd", w.Start.WorkflowID, req)
}

// AlwaysOnOptions filter [Client.AlwaysOn]. Empty fields match all.
type AlwaysOnOptions struct {
	// Prefix is how the id begins.
	Prefix string
	// Limit ends the list after so many workflows. Defaults to 0, all of them.
	Limit int
}

// AlwaysOn yields the always-on workflows in the order of their ids. The sequence ends with the
// last one, or with an error, which is its last value.
func (c *Client) AlwaysOn(
	ctx context.Context, o AlwaysOnOptions,
) iter.Seq2[ops.AlwaysOnRecord, error] {
	q := query{verb: "alwaysList"}
	fetch := func(cursor string, size int) ([]ops.AlwaysOnRecord, string, error) {
		req := &ops.AlwaysListRequest{
			V: schemas.Version, Prefix: o.Prefix, Limit: size, Cursor: cursor,
		}
		page, err := call(ctx, c, q, req,
			func(a *ops.AlwaysListResponse) *schemas.Error { return a.Error })
		if err != nil {
			return nil, "", err
		}
		return page.AlwaysOn, page.Cursor, nil
	}
	return pages(q, o.Limit, fetch)
}

// ShowAlwaysOn tells what an always-on workflow is and how it stands. Errors: [ErrNotFound],
// [ErrInvalid], [ErrUnavailable], [ErrTimeout].
func (c *Client) ShowAlwaysOn(ctx context.Context, id string) (*ops.AlwaysResponse, error) {
	return c.always(ctx, "alwaysShow", id, &ops.AlwaysRequest{V: schemas.Version, ID: id})
}

// StopAlwaysOnOptions of [Client.StopAlwaysOn] and [Client.RemoveAlwaysOn]. By default the open run
// is asked to end.
type StopAlwaysOnOptions struct {
	// Terminate ends the open run at once.
	Terminate bool
	// KeepRun leaves the open run alone.
	KeepRun bool
	// Reason says why.
	Reason string
}

// StopAlwaysOn keeps an always-on workflow down until it is started; nil options mean all defaults.
// Errors: those of [Client.ShowAlwaysOn].
func (c *Client) StopAlwaysOn(
	ctx context.Context, id string, o *StopAlwaysOnOptions,
) (*ops.AlwaysResponse, error) {
	return c.always(ctx, "alwaysStop", id, c.stopRequest(id, o))
}

// StartAlwaysOn undoes a stop, and begins the next run at once, also if it would wait after
// failures. Errors: those of [Client.ShowAlwaysOn].
func (c *Client) StartAlwaysOn(
	ctx context.Context, id, reason string,
) (*ops.AlwaysResponse, error) {
	req := &ops.AlwaysRequest{V: schemas.Version, ID: id, Reason: reason, Identity: c.name}
	return c.always(ctx, "alwaysStart", id, req)
}

// RemoveAlwaysOn removes an always-on workflow, and returns what it was last; nil options mean all
// defaults. Errors: those of [Client.ShowAlwaysOn].
func (c *Client) RemoveAlwaysOn(
	ctx context.Context, id string, o *StopAlwaysOnOptions,
) (*ops.AlwaysResponse, error) {
	return c.always(ctx, "alwaysRemove", id, c.stopRequest(id, o))
}

func (c *Client) stopRequest(id string, o *StopAlwaysOnOptions) *ops.AlwaysRequest {
	if o == nil {
		o = &StopAlwaysOnOptions{}
	}
	return &ops.AlwaysRequest{
		V: schemas.Version, ID: id, Terminate: o.Terminate, KeepRun: o.KeepRun, Reason: o.Reason,
		Identity: c.name,
	}
}

// always asks a verb about one always-on workflow.
func (c *Client) always(
	ctx context.Context, verb, id string, req any,
) (*ops.AlwaysResponse, error) {
	refusal := func(a *ops.AlwaysResponse) *schemas.Error { return a.Error }
	return call(ctx, c, query{verb: verb, id: id}, req, refusal)
}

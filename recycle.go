package drover

import (
	"context"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// SetRecycle sets when the servers whose home is this namespace restart their roles, one after the
// other; a zero At is never. It tells how recycles stand then. Asked, UpdatedAt and Identity are
// set by the server.
//
// Errors match [ErrInvalid], or [ErrConflict] if the namespace is the home of no server. It needs a
// server with the role ops.
func (c *Client) SetRecycle(
	ctx context.Context, r ops.Recycle, reason string,
) (*ops.RecycleResponse, error) {
	return c.recycle(ctx, "recycleSet",
		&ops.RecycleRequest{Recycle: &r, Reason: reason, Identity: c.name})
}

// RecycleNow has those servers restart their roles after a notice, 0 to 24 h, one after the other.
// It returns when that is announced; Latest has the slot of the recycle, by which others tell when
// it is finished.
//
// Errors are those of [Client.SetRecycle]. A repeat announces another recycle in place of the first
// one.
func (c *Client) RecycleNow(
	ctx context.Context, notice time.Duration, reason string,
) (*ops.RecycleResponse, error) {
	return c.recycle(ctx, "recycleNow",
		&ops.RecycleRequest{Notice: schemas.Duration(notice), Reason: reason, Identity: c.name})
}

// ShowRecycle tells when the servers whose home is this namespace restart their roles, since when
// the roles of each run, and where it stands in a recycle that goes on. It needs a server with the
// role ops.
func (c *Client) ShowRecycle(ctx context.Context) (*ops.RecycleResponse, error) {
	return c.recycle(ctx, "recycleShow", &ops.RecycleRequest{})
}

func (c *Client) recycle(
	ctx context.Context, verb string, req *ops.RecycleRequest,
) (*ops.RecycleResponse, error) {
	req.V = schemas.Version
	return call(ctx, c, query{verb: verb}, req,
		func(a *ops.RecycleResponse) *schemas.Error { return a.Error })
}

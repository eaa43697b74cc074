package drover

import (
	"cmp"
	"context"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// OnceOptions of [Client.Once]. The zero value is a day in UTC.
type OnceOptions struct {
	// Period is hour, day, week, month, or a cron expression whose times begin periods. Defaults to
	// day.
	Period string
	// TimeZone is where days begin: an IANA name such as Europe/Berlin. Defaults to UTC.
	TimeZone string
	// Caller tells callers apart: whoever asks again with the same one gets the same answer, also
	// after an accident. Defaults to a new one for each call.
	Caller string
	// WorkflowID and RunID are the workflow on whose behalf it is asked, for people. Default to
	// none.
	WorkflowID, RunID string
}

// Once tells whether the caller is the first of the period to ask for name, which is 1 to 256 bytes
// of text: true for exactly one caller of a period, whichever servers are asked.
//
// Errors: [ErrInvalid], which names the field; [ErrUnavailable], [ErrTimeout]. After the last two
// it is unknown whether this caller is the first; a repeat with the same Caller finds out.
func (c *Client) Once(ctx context.Context, name string, o OnceOptions) (bool, error) {
	a, err := c.AskOnce(ctx, name, o)
	if err != nil {
		return false, err
	}
	return a.First, nil
}

// AskOnce is [Client.Once] with all of the answer: the bounds of the period, and who was first.
func (c *Client) AskOnce(
	ctx context.Context, name string, o OnceOptions,
) (*ops.OnceResponse, error) {
	req := &ops.OnceRequest{
		V: schemas.Version, Name: name, Period: o.Period, TimeZone: o.TimeZone,
		Caller: cmp.Or(o.Caller, ulid.Make().String()), WorkflowID: o.WorkflowID, Run: o.RunID,
		Identity: c.name,
	}
	return call(ctx, c, query{verb: "once"}, req,
		func(a *ops.OnceResponse) *schemas.Error { return a.Error })
}

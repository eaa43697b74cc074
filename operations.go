package drover

import (
	"context"
	"iter"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// OperationsOptions filter [Client.Operations].
type OperationsOptions struct {
	// Kind is that of the operations. Defaults to all.
	Kind ops.OperationKind
	// After skips the operations up to this sequence. Defaults to 0.
	After uint64
	// Latest begins so late that only this many are left. Defaults to 0, all of them.
	Latest int
}

// Operations yields what the namespace did by itself, and what operators had it do: schedules that
// were changed, slots that were missed, always-on workflows that began anew, recycles. The oldest
// comes first. The sequence ends with the last one, or with an error, which is its last value.
func (c *Client) Operations(
	ctx context.Context, o OperationsOptions,
) iter.Seq2[ops.OperationEntry, error] {
	q := query{verb: "operations"}
	fetch := func(after uint64, size int) ([]ops.OperationEntry, uint64, error) {
		req := &ops.OperationsRequest{
			V: schemas.Version, Kind: o.Kind, Limit: size, After: max(after, o.After),
		}
		if after == 0 {
			req.Latest = o.Latest
		}
		page, err := call(ctx, c, q, req,
			func(a *ops.OperationsResponse) *schemas.Error { return a.Error })
		if err != nil {
			return nil, 0, err
		}
		return page.Operations, page.After, nil
	}
	return pages(q, 0, fetch)
}

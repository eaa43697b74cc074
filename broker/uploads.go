package broker

import (
	"context"

	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/schemas"
)

// noUploads is the refusal of an upload that would take what is left of the account or the server,
// or nil. Whose outcome it is, or input, is not known.
func (b *Broker) noUploads(ctx context.Context, q *schemas.UploadRequest) *schemas.Error {
	if q.WorkflowID != "" {
		return b.RefuseStart(ctx, q.Size)
	}
	if r := b.ServerQuota.Load(); r != nil && r.Share() >= env.UploadsFull {
		return r.ServerRefusal()
	}
	ctx, cancel := context.WithTimeout(ctx, env.QuotaPatience)
	defer cancel()
	r, err := b.ReadQuota(ctx, b.NS.StreamPayloads())
	if err != nil || !r.Account || r.Share() < env.UploadsFull {
		return nil // the store is not made yet, or the upload itself will tell
	}
	return r.NoAccount()
}

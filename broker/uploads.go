package broker

import (
	"context"

	"github.com/droverhq/drover/schemas"
)

// noUploads is the refusal of an upload that would take what is left of the account or the server,
// or nil. Whose outcome it is, or input, is not known.
func (b *Broker) noUploads(ctx context.Context, q *schemas.UploadRequest) *schemas.Error {
	if q.WorkflowID != "" {
		return b.refuseStart(ctx, q.Size)
	}
	if r := b.serverQuota.Load(); r != nil && r.share() >= uploadsFull {
		return r.serverRefusal()
	}
	ctx, cancel := context.WithTimeout(ctx, quotaPatience)
	defer cancel()
	r, err := b.readQuota(ctx, b.ns.StreamPayloads())
	if err != nil || !r.account || r.share() < uploadsFull {
		return nil // the store is not made yet, or the upload itself will tell
	}
	return r.noAccount()
}

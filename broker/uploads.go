package broker

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
	"github.com/nats-io/nats.go/micro"
)

// defaultPiece is how much of a payload one answer brings, if the server's max_payload allows.
const defaultPiece = 512 << 10

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

// openPayloads begins to take and give payloads that are too large for messages. It makes nothing:
// the store comes with its first object.
func (b *Broker) openPayloads() error {
	b.Store = payloads.NewStore(b.Reads, b.NS, func(ctx context.Context) error {
		err := topology.EnsurePayloads(ctx, b.Reads, b.NS, b.Options.Version)
		if errors.Is(err, topology.ErrRefused) && !topology.Transient(err) {
			// as beyond the limits of an account, which trying again does not raise
			return schemas.Errorf(schemas.CodeLimit,
				"the object store of namespace %q cannot be made: %v", b.NS, err).WithHint(
				"it was not stored; payloads up to %d bytes need no object store",
				schemas.PayloadThreshold)
		}
		return err
	})
	b.uploads = payloads.NewUploads(b.Store, b.Options.MaxObject, b.Options.Logger)
	b.Promised = b.uploads.Promised
	_, err := b.api.Subscribe(b.uploads.Subject(), "", b.uploadChunk)
	return err
}

func (b *Broker) serveUpload(r micro.Request) {
	var q schemas.UploadRequest
	if err := env.DecodeRequest(r, &q); err != nil {
		b.refuse(r, env.Invalid(err))
		return
	}
	if (q.WorkflowID == "") != (q.Run == "") {
		b.refuse(r, schemas.Errorf(schemas.CodeInvalid,
			"workflowId and run name a start together, or neither is there").InField("run"))
		return
	}
	b.background(r, func(ctx context.Context) (any, error) {
		if refused := b.noUploads(ctx, &q); refused != nil {
			return nil, refused
		}
		a, refused := b.uploads.Begin(&q)
		if refused != nil {
			return nil, refused
		}
		return a, nil
	})
}

// uploadChunk stores a chunk in a goroutine of its own: uploads do not wait for each other, and
// each has one chunk at a time.
func (b *Broker) uploadChunk(m natsconn.Msg) {
	b.Work.Go(func() {
		ctx, cancel := context.WithTimeout(b.Background, env.ReadTimeout)
		defer cancel()
		a, refused := b.uploads.Chunk(ctx, m.Subject, m.Data)
		if refused != nil {
			a = &schemas.UploadResponse{V: schemas.Version, Error: refused}
		}
		b.Respond(m.Reply, m.Header.Get(schemas.ContentTypeHeader), a)
	})
}

func (b *Broker) serveDownload(r micro.Request) {
	var q schemas.DownloadRequest
	if err := env.DecodeRequest(r, &q); err != nil {
		b.refuse(r, env.Invalid(err))
		return
	}
	b.background(r, func(ctx context.Context) (any, error) { return b.download(ctx, &q) })
}

func (b *Broker) download(
	ctx context.Context, q *schemas.DownloadRequest,
) (*schemas.DownloadResponse, error) {
	most := min(defaultPiece, b.MessageLimit()) // in JSON it stands as base64
	if q.Limit > 0 {
		most = min(most, q.Limit)
	}
	if err := schemas.ValidateID("object", q.Object); err != nil {
		return nil, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("object")
	}
	data, next, err := b.Store.Read(ctx, q.Object, q.Cursor, most)
	switch {
	case errors.Is(err, natsconn.ErrNotFound):
		return nil, schemas.Errorf(schemas.CodeNotFound, "%v", err).InField("object").
			WithHint("a payload goes with the run that it belongs to; if that is still there, " +
				"the payload is lost: \"drover doctor\" tells of the store, \"drover verify\" of single payloads")
	case errors.Is(err, payloads.ErrCursor):
		return nil, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("cursor").
			WithHint("leave it out, or pass what an answer said as next")
	case err != nil:
		return nil, err
	}
	return &schemas.DownloadResponse{V: schemas.Version, Data: data, Next: next}, nil
}

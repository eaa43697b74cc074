package payloads

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// oneTry bounds one request of a transfer.
	oneTry     = 5 * time.Second
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
	// maxGuess bounds what is allocated on the word of a reference.
	maxGuess = 64 << 20
)

// ErrDamaged reports a payload that is not what its reference says.
var ErrDamaged = errors.New("the payload does not have the size and digest of its reference")

// Client moves payloads through the API of a namespace. It needs the right to publish to
// drover.<ns>.api.upload, drover.<ns>.api.upload.> and drover.<ns>.api.download, and to its own
// inbox. All methods may be called by several goroutines at once.
type Client struct {
	conn     *natsconn.Conn
	ns       subject.Namespace
	patience time.Duration

	workflowID, run string // of the start that uploads are for; see For
}

// For returns a client whose uploads are inputs of one start, which names its run, and of nothing
// else. They are removed when that start is refused.
func (c *Client) For(workflowID, run string) *Client {
	d := *c
	d.workflowID, d.run = workflowID, run
	return &d
}

// NewClient returns a client that keeps trying for patience while nothing moves; 0 means as long as
// ctx lasts.
func NewClient(conn *natsconn.Conn, ns subject.Namespace, patience time.Duration) *Client {
	return &Client{conn: conn, ns: ns, patience: patience}
}

// MaxPayload is the size in bytes of the largest message that the server takes.
func (c *Client) MaxPayload() int64 { return c.conn.MaxPayload() }

// Spill returns a payload up to InlineLimit as it is. A larger one is handed over, and its
// reference returned. Errors: a [*schemas.Error] if it is refused, such as one larger than the
// service takes; else what the connection says, or ctx's own.
func (c *Client) Spill(ctx context.Context, p schemas.Payload) (schemas.Payload, error) {
	if len(p) <= InlineLimit(c.conn.MaxPayload()) {
		return p, nil
	}
	return c.Move(ctx, p)
}

// Move hands a payload over, whatever its size, and returns its reference. One that is a reference
// stays as it is. Errors as of [Client.Spill].
func (c *Client) Move(ctx context.Context, p schemas.Payload) (schemas.Payload, error) {
	if _, ok := p.Ref(); ok {
		return p, nil
	}
	ref, err := c.Upload(ctx, p)
	if err != nil {
		return nil, err
	}
	return schemas.RefPayload(ref), nil
}

// Resolve returns what a reference refers to, and every other payload as it is. Errors as of
// [Client.Download].
func (c *Client) Resolve(ctx context.Context, p schemas.Payload) (schemas.Payload, error) {
	ref, ok := p.Ref()
	if !ok {
		return p, nil
	}
	return c.Download(ctx, ref)
}

// Upload hands a payload over, whatever its size. An upload that is cut short leaves nothing after
// and is begun anew.
func (c *Client) Upload(ctx context.Context, p schemas.Payload) (*schemas.PayloadRef, error) {
	sum := sha256.Sum256(p)
	u := &sending{client: c, content: p, try: c.begin()}
	for {
		ref, err := u.once(ctx, hex.EncodeToString(sum[:]))
		if err == nil {
			return ref, nil
		}
		if !u.try.again(ctx, err) {
			return nil, fmt.Errorf("upload of %d bytes: %w", len(p), err)
		}
	}
}

// sending is one Upload.
type sending struct {
	client  *Client
	content schemas.Payload
	try     *trying
	best    int64 // how far any try has come
}

// once is one try, from the beginning.
func (u *sending) once(ctx context.Context, digest string) (*schemas.PayloadRef, error) {
	c := u.client
	begun := &schemas.UploadResponse{}
	body, err := schemas.Marshal(&schemas.UploadRequest{
		Size: int64(len(u.content)), Digest: digest, WorkflowID: c.workflowID, Run: c.run,
	})
	if err == nil {
		err = c.request(ctx, c.ns.API("upload"), body, begun)
	}
	switch {
	case err != nil:
		return nil, err
	case begun.Error != nil:
		return nil, begun.Error
	case begun.Subject == "" || begun.ChunkBytes < 1:
		return nil, fmt.Errorf("the answer to the upload names no subject: the server is at fault")
	}
	// the broker may be connected to a server that takes more
	most := min(int64(begun.ChunkBytes), max(c.conn.MaxPayload()/2, 1))
	for offset := int64(0); offset < int64(len(u.content)); {
		end := min(offset+most, int64(len(u.content)))
		a, err := u.chunk(ctx, subject.UploadChunk(begun.Subject, offset), u.content[offset:end])
		switch {
		case err != nil:
			return nil, err
		case a.Ref != nil:
			return a.Ref, nil
		case a.Offset != end:
			return nil, &lostError{
				fmt.Errorf("the server is at byte %d, this side at %d", a.Offset, end),
			}
		}
		if offset = end; offset > u.best {
			u.best = offset
			u.try.progress()
		}
	}
	return nil, &lostError{errors.New("the last chunk was answered without a reference")}
}

// chunk sends a chunk until it is answered. When the broker that took the upload is gone, so is the
// upload.
func (u *sending) chunk(
	ctx context.Context, subj string, data []byte,
) (*schemas.UploadResponse, error) {
	for {
		a := &schemas.UploadResponse{}
		err := u.client.bulk(ctx, u.try, subj, data, a)
		if err == nil && a.Error != nil {
			err = a.Error
		}
		if err == nil {
			return a, nil
		}
		refusal, refused := errors.AsType[*schemas.Error](err)
		switch {
		case errors.Is(err, natsconn.ErrNoResponders),
			refused && (refusal.Code == schemas.CodeNotFound || refusal.Code == schemas.CodeConflict):
			return nil, &lostError{err}
		case !u.try.again(ctx, err):
			return nil, err
		}
	}
}

// lostError says that an upload is forgotten and can be begun anew.
type lostError struct{ err error }

func (e *lostError) Error() string { return "the upload was lost: " + e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// Download fetches what a reference refers to, and checks it. Errors: [ErrDamaged]; a
// [*schemas.Error], with CodeNotFound if the object is gone; what the connection says; ctx's own.
func (c *Client) Download(ctx context.Context, ref *schemas.PayloadRef) (schemas.Payload, error) {
	content := make(schemas.Payload, 0, min(max(ref.Size, 0), maxGuess))
	sum := sha256.New()
	try := c.begin()
	for cursor := ""; ; {
		a, err := c.piece(ctx, try, ref, cursor)
		if err != nil {
			if try.again(ctx, err) {
				continue
			}
			return nil, fmt.Errorf("download of object %s: %w", ref.Object, err)
		}
		try.progress()
		content = append(content, a.Data...)
		sum.Write(a.Data)
		if cursor = a.Next; cursor == "" || len(a.Data) == 0 || int64(len(content)) > ref.Size {
			break
		}
	}
	if int64(len(content)) != ref.Size || hex.EncodeToString(sum.Sum(nil)) != ref.Digest {
		return nil, fmt.Errorf("download of object %s: %w: %d of %d bytes came",
			ref.Object, ErrDamaged, len(content), ref.Size)
	}
	return content, nil
}

func (c *Client) piece(
	ctx context.Context, try *trying, ref *schemas.PayloadRef, cursor string,
) (*schemas.DownloadResponse, error) {
	body, err := schemas.Marshal(&schemas.DownloadRequest{Object: ref.Object, Cursor: cursor})
	if err != nil {
		return nil, err
	}
	a := &schemas.DownloadResponse{}
	if err := c.bulk(ctx, try, c.ns.API("download"), body, a); err != nil {
		return nil, err
	}
	if a.Error != nil {
		return nil, a.Error
	}
	return a, nil
}

// bulk is request for what is large, in either direction: it waits until the link has room. While
// others are answered, that is no time in which nothing moves.
func (c *Client) bulk(
	ctx context.Context, try *trying, subj string, body []byte, answer any,
) error {
	done, moved, err := c.conn.Bulk(ctx, max(len(body), natsconn.BulkBytes), try.left())
	if err != nil {
		return err
	}
	try.since = try.since.Add(moved)
	err = c.request(ctx, subj, body, answer)
	done(err)
	return err
}

func (c *Client) request(ctx context.Context, subj string, body []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, oneTry)
	defer cancel()
	m, err := c.conn.Request(ctx, subj,
		natsconn.Header{schemas.ContentTypeHeader: {schemas.ContentTypeMsgpack}}, body)
	if err != nil {
		return err
	}
	if err := schemas.Unmarshal(m.Data, answer); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	return nil
}

// trying decides how long one transfer goes on without getting anywhere.
type trying struct {
	patience time.Duration
	since    time.Time
	wait     time.Duration
}

func (c *Client) begin() *trying {
	t := &trying{patience: c.patience}
	t.progress()
	return t
}

func (t *trying) progress() { t.since, t.wait = time.Now(), firstPause }

// left is what remains of the patience; 0 for no bound.
func (t *trying) left() time.Duration {
	if t.patience <= 0 {
		return 0
	}
	return max(t.patience-time.Since(t.since), 1)
}

// again waits before the next try; false means that there is none.
func (t *trying) again(ctx context.Context, err error) bool {
	if ctx.Err() != nil || !Transient(err) ||
		t.patience > 0 && time.Since(t.since)+t.wait >= t.patience {
		return false
	}
	wait := t.wait
	t.wait = min(2*wait, lastPause)
	return sleep.For(ctx, wait) == nil
}

// Transient tells whether a transfer that failed may succeed a little later.
func Transient(err error) bool {
	if _, lost := errors.AsType[*lostError](err); lost {
		return true
	}
	if refusal, ok := errors.AsType[*schemas.Error](err); ok {
		return refusal.Code == schemas.CodeUnavailable || refusal.Code == schemas.CodeTimeout
	}
	if errors.Is(err, natsconn.ErrPermission) || errors.Is(err, natsconn.ErrClosed) {
		return false
	}
	return errors.Is(err, natsconn.ErrNoResponders) || natsconn.Transient(err)
}

package payloads

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// maxChunk is the size of chunks, as other NATS clients have it.
	maxChunk = 128 << 10
	// inFlight bounds how often a compare-and-set is repeated that met another one on its way.
	inFlight      = 50
	inFlightPause = 5 * time.Millisecond
)

// ErrCursor reports a cursor that no answer has given.
var ErrCursor = errors.New("the cursor is none of this store")

// Store is the object store of a namespace. All methods may be called by several goroutines at
// once.
type Store struct {
	conn   *natsconn.Conn
	ns     subject.Namespace
	ensure func(context.Context) error
	ready  atomic.Bool
}

// NewStore returns the store of a namespace. ensure makes it if it is missing; it is called before
// the first write, and again if the store is gone.
func NewStore(
	conn *natsconn.Conn, ns subject.Namespace, ensure func(context.Context) error,
) *Store {
	return &Store{conn: conn, ns: ns, ensure: ensure}
}

// ChunkBytes is the most that one chunk may hold.
func (s *Store) ChunkBytes() int { return min(maxChunk, int(s.conn.MaxPayload())/2) }

// info is what NATS clients keep of an object.
type info struct {
	Name    string    `json:"name"`
	Options options   `json:"options"`
	Bucket  string    `json:"bucket"`
	ID      string    `json:"nuid"`
	Size    int64     `json:"size"`
	ModTime time.Time `json:"mtime"` // readers take the time of the message
	Chunks  int       `json:"chunks"`
	Digest  string    `json:"digest,omitempty"`
	Deleted bool      `json:"deleted,omitempty"`

	seq uint64 // of the message
}

type options struct {
	ChunkBytes int `json:"max_chunk_size"`
}

const digestPrefix = "SHA-256="

func (i *info) ref() (*schemas.PayloadRef, error) {
	text, ok := strings.CutPrefix(i.Digest, digestPrefix)
	sum, err := base64.URLEncoding.DecodeString(text)
	if !ok || err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("object %s has the digest %q, which is no SHA-256", i.Name, i.Digest)
	}
	return &schemas.PayloadRef{Object: i.Name, Size: i.Size, Digest: hex.EncodeToString(sum)}, nil
}

// info reads what is known of an object from the leader. A missing one is [natsconn.ErrNotFound];
// with one that another NATS client has deleted comes what is left of it, whose place its name has.
func (s *Store) info(ctx context.Context, object string) (*info, error) {
	m, err := s.conn.LastBySubject(ctx, s.ns.StreamPayloads(), s.ns.PayloadInfo(object))
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", object, missing(err))
	}
	i := &info{seq: m.Seq}
	if err := json.Unmarshal(m.Data, i); err != nil {
		return nil, fmt.Errorf("object %s: %w: what is stored of it cannot be read: %w",
			object, ErrDamaged, err)
	}
	if i.Deleted {
		return i, fmt.Errorf("object %s: it was deleted: %w", object, natsconn.ErrNotFound)
	}
	return i, nil
}

// Check tells whether a reference is to an object of the store: [natsconn.ErrNotFound] if there is
// none of the name, [ErrDamaged] if that is of another size or digest, or none that the store has
// made, as a link of another NATS client. Any other error may pass.
func (s *Store) Check(ctx context.Context, ref *schemas.PayloadRef) error {
	i, err := s.info(ctx, ref.Object)
	if err != nil {
		return err
	}
	if have, err := i.ref(); err != nil || have.Size != ref.Size || have.Digest != ref.Digest {
		return fmt.Errorf("object %s: %w", ref.Object, ErrDamaged)
	}
	return nil
}

// missing takes a store that is not there for an empty one: it is made for the first object.
func missing(err error) error {
	if errors.Is(err, natsconn.ErrNoStream) {
		return natsconn.ErrNotFound
	}
	return err
}

// Put stores data under a name, and returns the reference of what has the name then: if an object
// of the name exists, it is that one's.
func (s *Store) Put(ctx context.Context, object string, data []byte) (*schemas.PayloadRef, error) {
	if have, err := s.info(ctx, object); err == nil {
		return have.ref()
	} else if !errors.Is(err, natsconn.ErrNotFound) {
		return nil, err
	}
	w := s.NewWriter()
	for chunk := range slices.Chunk(data, s.ChunkBytes()) {
		if err := w.Write(ctx, chunk); err != nil {
			return nil, errors.Join(err, w.Abort(ctx))
		}
	}
	ref, err := w.Commit(ctx, object)
	if errors.Is(err, natsconn.ErrFull) {
		// for certain: after any other error the object may be there
		err = errors.Join(err, w.Abort(ctx))
	}
	return ref, err
}

// Read returns a piece of an object of about limit bytes, one chunk at least, and the cursor of
// what follows: empty at the end. Any process of the namespace can go on with a cursor. A missing
// object is [natsconn.ErrNotFound], a cursor of the caller's own making [ErrCursor].
func (s *Store) Read(
	ctx context.Context, object, cursor string, limit int,
) (data []byte, next string, err error) {
	at := place{seq: 1}
	if cursor == "" {
		i, err := s.info(ctx, object)
		if err != nil {
			return nil, "", err
		}
		at.id, at.left = i.ID, i.Size
	} else if at, err = parsePlace(cursor); err != nil {
		return nil, "", err
	}
	for at.left > 0 && (len(data) == 0 || len(data)+s.ChunkBytes() <= limit) {
		m, err := s.conn.NextBySubject(ctx, s.ns.StreamPayloads(), s.ns.PayloadChunks(at.id),
			at.seq)
		if err != nil {
			return nil, "", fmt.Errorf("object %s, %d bytes before its end: %w",
				object, at.left, missing(err))
		}
		data = append(data, m.Data...)
		at.seq, at.left = m.Seq+1, at.left-int64(len(m.Data))
	}
	if at.left > 0 {
		next = at.String()
	}
	return data, next, nil
}

// place is where a reader stands: the id of the chunks, the stream sequence of the next one, and
// the bytes that are left.
type place struct {
	id   string
	seq  uint64
	left int64
}

func (p place) String() string {
	return p.id + "." + strconv.FormatUint(p.seq, 36) + "." + strconv.FormatInt(p.left, 36)
}

func parsePlace(cursor string) (p place, err error) {
	parts := strings.Split(cursor, ".")
	if len(parts) != 3 || parts[0] == "" {
		return p, ErrCursor
	}
	p.id = parts[0]
	if p.seq, err = strconv.ParseUint(parts[1], 36, 64); err != nil {
		return p, ErrCursor
	}
	if p.left, err = strconv.ParseInt(parts[2], 36, 64); err != nil || p.left <= 0 {
		return p, ErrCursor
	}
	return p, nil
}

// Writer writes one object. It belongs to one goroutine. After an error only Abort may be called.
type Writer struct {
	store  *Store
	id     string
	size   int64
	chunks int
	sum    hash.Hash
	dirty  bool // something may be stored
}

// NewWriter returns a writer; nothing is stored yet.
func (s *Store) NewWriter() *Writer {
	return &Writer{store: s, id: ulid.Make().String(), sum: sha256.New()}
}

// Size is how many bytes are stored.
func (w *Writer) Size() int64 { return w.size }

// Digest is the SHA-256 of what is stored, in hex.
func (w *Writer) Digest() string { return hex.EncodeToString(w.sum.Sum(nil)) }

// Write stores the next chunk.
func (w *Writer) Write(ctx context.Context, chunk []byte) error {
	w.dirty = true
	if err := w.store.publish(ctx, w.store.ns.PayloadChunks(w.id), nil, chunk); err != nil {
		return fmt.Errorf("store a payload: %w", err)
	}
	w.sum.Write(chunk)
	w.size += int64(len(chunk))
	w.chunks++
	return nil
}

// Commit gives what was written its name. If the name is taken, the chunks are removed and the
// reference of the object that has it is returned.
func (w *Writer) Commit(ctx context.Context, object string) (*schemas.PayloadRef, error) {
	i := info{
		Name: object, Options: options{w.store.ChunkBytes()}, Bucket: w.store.ns.StorePayloads(),
		ID: w.id, Size: w.size, Chunks: w.chunks,
		Digest: digestPrefix + base64.URLEncoding.EncodeToString(w.sum.Sum(nil)),
	}
	body, err := json.Marshal(&i)
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", object, err)
	}
	err = w.store.name(ctx, object, 0, body)
	if errors.Is(err, natsconn.ErrWrongSequence) {
		if have, _ := w.store.info(ctx, object); have != nil && have.Deleted {
			err = w.store.name(ctx, object, have.seq, body)
		}
	}
	if errors.Is(err, natsconn.ErrWrongSequence) {
		have, err := w.store.info(ctx, object)
		if err != nil {
			return nil, err
		}
		if have.ID != w.id { // else an earlier try was ours, and its answer lost
			if err := w.Abort(ctx); err != nil {
				return nil, err
			}
		}
		return have.ref()
	}
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", object, err)
	}
	return i.ref()
}

// name stores what is known of an object, if the last that was known has a sequence: 0 for nothing.
func (s *Store) name(ctx context.Context, object string, last uint64, body []byte) error {
	head := natsconn.Header{}
	natsconn.ExpectLastSubjectSeq(head, last)
	err := s.publish(ctx, s.ns.PayloadInfo(object), head, body)
	for tries := 0; errors.Is(err, natsconn.ErrInFlight) && tries < inFlight &&
		sleep.For(ctx, inFlightPause) == nil; tries++ {
		err = s.publish(ctx, s.ns.PayloadInfo(object), head, body)
	}
	return err
}

// Abort removes what was written.
func (w *Writer) Abort(ctx context.Context) error {
	if !w.dirty {
		return nil
	}
	err := w.store.conn.PurgeSubject(ctx, w.store.ns.StreamPayloads(),
		w.store.ns.PayloadChunks(w.id))
	if err != nil && !errors.Is(err, natsconn.ErrNoStream) {
		return fmt.Errorf("remove the chunks of an unfinished payload: %w", err)
	}
	return nil
}

// publish stores a message, and makes the store before if it is missing.
func (s *Store) publish(ctx context.Context, subj string, h natsconn.Header, body []byte) error {
	for again := true; ; again = false {
		if !s.ready.Load() {
			if err := s.ensure(ctx); err != nil {
				return err
			}
			s.ready.Store(true)
		}
		_, err := s.conn.PublishSync(ctx, subj, h, body)
		if !errors.Is(err, natsconn.ErrNoStream) || !again {
			return err
		}
		s.ready.Store(false)
	}
}

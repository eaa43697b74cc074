package payloads

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

const (
	// maxUploads bounds how many uploads a broker takes at once; another one is told to come back.
	maxUploads = 64
	// idleAfter is how long an upload may be silent. After that it is forgotten and its chunks are
	// removed.
	idleAfter = 30 * time.Second
	// abortFor bounds the removal of chunks.
	abortFor = 5 * time.Second
)

// Uploads takes payloads from clients, chunk by chunk, as schemas.PayloadRef describes. It holds no
// more of them than the chunk in hand.
type Uploads struct {
	store *Store
	ns    subject.Namespace
	id    string
	limit int64
	log   logrus.FieldLogger

	mu     sync.Mutex
	closed bool
	active int // of known, those that are not finished
	known  map[string]*upload
}

// upload is one payload on its way. Finished ones stay for a while, for those who ask again.
type upload struct {
	mu     sync.Mutex // held while a chunk is stored
	w      *Writer
	size   int64
	digest string
	name   string              // of the object
	stored atomic.Int64        // bytes
	ref    *schemas.PayloadRef // set when it is finished
	idle   *time.Timer
	ended  bool
}

// NewUploads returns uploads of at most limit bytes each into a store.
func NewUploads(store *Store, limit int64, log logrus.FieldLogger) *Uploads {
	return &Uploads{
		store: store, ns: store.ns, id: rand.Text(), limit: limit, log: log,
		known: make(map[string]*upload),
	}
}

// Subject is where the chunks of all uploads come in; pass them to Chunk.
func (u *Uploads) Subject() string { return u.ns.AllUploads(u.id) }

// Begin opens an upload. Nothing is stored yet.
func (u *Uploads) Begin(q *schemas.UploadRequest) (*schemas.UploadResponse, *schemas.Error) {
	if q.Size < 1 {
		return nil, schemas.Errorf(schemas.CodeInvalid, "size is %d; want that of the payload "+
			"in bytes, at least 1", q.Size).InField("size")
	}
	if q.Size > u.limit {
		return nil, schemas.Errorf(schemas.CodeTooLarge, "the payload has %d bytes; at most %d "+
			"are taken", q.Size, u.limit).InField("size").
			WithHint("keep it elsewhere and pass its name, split it, or raise the servers' limit")
	}
	if err := schemas.ValidateDigest(q.Digest); err != nil {
		return nil, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("digest")
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || u.active >= maxUploads {
		return nil, schemas.Errorf(schemas.CodeUnavailable, "the server has %d uploads under way",
			u.active).WithHint("try again in a moment")
	}
	subj := u.ns.Upload(u.id, ulid.Make().String())
	up := &upload{
		w: u.store.NewWriter(), size: q.Size, digest: q.Digest, name: ulid.Make().String(),
	}
	if q.WorkflowID != "" {
		up.name = StartPrefix(q.WorkflowID, q.Run) + up.name
	}
	up.idle = time.AfterFunc(idleAfter, func() { u.expire(subj, up) })
	u.known[subj] = up
	u.active++
	return &schemas.UploadResponse{
		V: schemas.Version, Subject: subj, ChunkBytes: u.store.ChunkBytes(),
	}, nil
}

// Promised is how many bytes the uploads under way may still store.
func (u *Uploads) Promised() (bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, up := range u.known {
		bytes += up.size - up.stored.Load()
	}
	return bytes
}

// Chunk takes the next chunk of an upload. subj is where it came in.
func (u *Uploads) Chunk(
	ctx context.Context, subj string, data []byte,
) (*schemas.UploadResponse, *schemas.Error) {
	name, offset, ok := subject.ParseUploadChunk(subj)
	if !ok {
		return nil, schemas.Errorf(schemas.CodeInvalid, "the last token of %s is no offset", subj).
			WithHint("send a chunk to the upload's subject with its offset after a dot")
	}
	u.mu.Lock()
	up := u.known[name]
	u.mu.Unlock()
	if up == nil {
		return nil, unknownUpload()
	}
	if !up.mu.TryLock() {
		return nil, schemas.Errorf(schemas.CodeUnavailable,
			"another chunk of the upload is being stored").WithHint("try again in a moment")
	}
	defer up.mu.Unlock()
	if up.ended {
		return nil, unknownUpload()
	}
	up.idle.Stop()
	defer func() {
		if !up.ended {
			up.idle.Reset(idleAfter)
		}
	}()
	answer := func() *schemas.UploadResponse {
		return &schemas.UploadResponse{V: schemas.Version, Offset: up.w.Size(), Ref: up.ref}
	}
	if up.ref != nil || len(data) > 0 && offset+int64(len(data)) <= up.w.Size() { // a repeat
		return answer(), nil
	}
	if err := up.check(offset, len(data), u.store.ChunkBytes()); err != nil {
		return nil, err
	}
	if err := u.take(ctx, up, data); err != nil {
		u.end(name, up)
		return nil, err
	}
	return answer(), nil
}

func unknownUpload() *schemas.Error {
	return schemas.Errorf(schemas.CodeNotFound, "the upload is unknown: it has failed, or was "+
		"silent for %v", idleAfter).WithHint("begin the upload anew")
}

func (up *upload) check(offset int64, length, most int) *schemas.Error {
	switch {
	case offset != up.w.Size():
		return schemas.Errorf(schemas.CodeConflict, "the chunk begins at %d; %d is next",
			offset, up.w.Size()).
			WithHint("send the chunks in order, each when the one before is answered")
	case length == 0:
		return schemas.Errorf(schemas.CodeInvalid, "the chunk is empty")
	case length > most:
		return schemas.Errorf(schemas.CodeTooLarge, "the chunk has %d bytes; at most %d are taken",
			length, most).WithHint("see chunkBytes in the first answer")
	case offset+int64(length) > up.size:
		return schemas.Errorf(schemas.CodeInvalid, "the chunk ends at %d; %d bytes were announced",
			offset+int64(length), up.size).InField("size")
	}
	return nil
}

// take stores a chunk, and with the last one the object. After an error the upload is over.
func (u *Uploads) take(ctx context.Context, up *upload, data []byte) *schemas.Error {
	failed := func(err error) *schemas.Error {
		u.log.WithError(err).Warn("an upload has failed")
		if refusal, ok := errors.AsType[*schemas.Error](err); ok {
			return refusal
		}
		if errors.Is(err, natsconn.ErrFull) {
			return schemas.Errorf(schemas.CodeLimit, "the object store of namespace %q is full: %v",
				u.ns, err).
				InField("maxBytes").
				WithHint("it was not stored; %s", natsconn.RoomHint(err, string(u.ns)))
		}
		return schemas.Errorf(schemas.CodeUnavailable, "%v", err).WithHint("begin the upload anew")
	}
	if err := up.w.Write(ctx, data); err != nil {
		return failed(err)
	}
	up.stored.Store(up.w.Size())
	if up.w.Size() < up.size {
		return nil
	}
	if got := up.w.Digest(); got != up.digest {
		return schemas.Errorf(schemas.CodeInvalid,
			"the digest of what came is %s; %s was announced", got, up.digest).
			InField("digest").WithHint(
			"the payload was damaged on its way, or another one was digested: begin the upload anew")
	}
	ref, err := up.w.Commit(ctx, up.name)
	if err != nil {
		return failed(err)
	}
	up.ref = ref
	u.mu.Lock()
	defer u.mu.Unlock()
	u.active--
	return nil
}

// expire forgets an upload that was silent.
func (u *Uploads) expire(name string, up *upload) {
	if !up.mu.TryLock() {
		return // a chunk came in this moment; it sets the timer anew
	}
	defer up.mu.Unlock()
	if !up.ended {
		u.end(name, up)
	}
}

// end forgets an upload; if it is not finished, its chunks are removed. The caller holds up.mu.
func (u *Uploads) end(name string, up *upload) {
	up.ended = true
	u.mu.Lock()
	up.idle.Stop() // under the lock that it was set under: it may be the timer itself that calls
	delete(u.known, name)
	if up.ref == nil {
		u.active--
	}
	u.mu.Unlock()
	if up.ref != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), abortFor)
	defer cancel()
	if err := up.w.Abort(ctx); err != nil {
		u.log.WithError(err).Warn("an unfinished upload leaves chunks")
	}
}

// Close ends all uploads and takes no more.
func (u *Uploads) Close() {
	u.mu.Lock()
	u.closed = true
	all := make(map[string]*upload, len(u.known))
	maps.Copy(all, u.known)
	u.mu.Unlock()
	var ends sync.WaitGroup
	defer ends.Wait()
	for name, up := range all {
		ends.Go(func() {
			up.mu.Lock()
			defer up.mu.Unlock()
			if !up.ended {
				u.end(name, up)
			}
		})
	}
}

package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

const (
	// roomEvery is how often the room of a limited history is looked at, and roomRarely that of an unlimited one: a limit
	// may be set later.
	roomEvery  = 2 * time.Second
	roomRarely = time.Minute
	roomSoon   = 50 * time.Millisecond // for a server that is nearly full, which is asked without a message
	// Above roomFull percent of its bytes, or of those of its account, a history takes no new runs and no signals through the API: what
	// runs needs the rest, and so do the fences and claims of owners. Without these nobody could purge what makes room.
	roomFull = 90
	// uploadsFull is the share of its account behind which no upload is taken, so that those of starts that are refused do not use up the rest.
	uploadsFull = 0.95
	// roomPatience bounds how long an upload waits for that, as while a cluster elects its leader.
	roomPatience = time.Second
	// fullPause is how long a partition whose history takes nothing more waits before it is tried again.
	fullPause = 2 * time.Second
	// maxDoublings of the shortest pause are more than fullPause.
	maxDoublings = 7
)

// room is what is known of the limit that the partition comes to first: of its history, or of all streams of the account.
type room struct {
	looked  time.Time
	busy    bool
	account bool  // it is that of the account
	limit   int64 // bytes; 0 or less is none
	bytes   int64
	// promised are bytes of starts that are begun and not sent yet: they come to bytes with their
	// records.
	promised int64
}

func (r *room) full() bool { return r.limit > 0 && r.bytes+r.promised > r.limit/100*roomFull }

// share is how much of the limit is used.
func (r *room) share() float64 {
	if r.limit <= 0 {
		return 0
	}
	return float64(r.bytes) / float64(r.limit)
}

// lookAtRoom asks how full the history is, and its account, once in a while.
func (p *partition) lookAtRoom() {
	every := roomRarely
	if p.room.limit > 0 {
		every = roomEvery
	}
	if p.room.busy || time.Since(p.room.looked) < every {
		return
	}
	p.room.busy, p.room.looked = true, time.Now()
	writeAsync(p.b, p.loop, func(ctx context.Context) (room, error) {
		return p.b.readRoom(ctx, p.b.ns.StreamHistory(p.n))
	}, func(now room, err error) {
		p.room.busy = false
		if err != nil {
			p.log.WithError(err).Debug("the size of the history cannot be read now")
			return
		}
		was := p.room.full()
		p.room.account, p.room.limit, p.room.bytes = now.account, now.limit, now.bytes
		if full := p.room.full(); full != was {
			p.log.WithField("bytes", p.room.bytes).WithField("limit", p.room.limit).WithField("account", p.room.account).WithField("full", full).
				Warn("the room for new workflows has changed")
		}
	})
}

// readRoom asks what limit the stream comes to first.
func (b *Broker) readRoom(ctx context.Context, stream string) (room, error) {
	js := b.reads.JetStream()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return room{}, err
	}
	account, err := js.AccountInfo(ctx)
	if err != nil {
		return room{}, err
	}
	info := s.CachedInfo()
	return closer(&info.Config, int64(info.State.Bytes), account), nil
}

// closer is the limit that a stream of so many bytes comes to first. An account has limits for each number of replicas, or one for all.
func closer(stream *jetstream.StreamConfig, bytes int64, account *jetstream.AccountInfo) room {
	// What is used counts each copy. A limit of a tier counts one, the other all.
	copies := int64(stream.Replicas)
	tier, ok := account.Tiers[fmt.Sprintf("R%d", copies)]
	if !ok {
		tier, copies = account.Tier, 1
	}
	own := room{limit: stream.MaxBytes, bytes: bytes}
	whole := room{account: true, limit: copies * tier.Limits.MaxStore, bytes: int64(tier.Store)}
	if stream.Storage == jetstream.MemoryStorage {
		whole.limit, whole.bytes = copies*tier.Limits.MaxMemory, int64(tier.Memory)
	}
	if whole.limit > 0 && (own.limit <= 0 || whole.share() > own.share()) {
		return whole
	}
	return own
}

// noRoom is the refusal of what would fill the history.
func (p *partition) noRoom() *schemas.Error {
	switch {
	case p.b.wholeFull():
		return p.b.whole.Load().noWhole()
	case p.room.account:
		return p.room.noAccount()
	}
	return schemas.Errorf(schemas.CodeLimit, "the histories of namespace %q are full: partition %d has %d of %d bytes", p.b.o.Namespace, p.n, p.room.bytes, p.room.limit).
		InField("maxBytes").WithHint("%s", post.RoomHint(nil, p.b.o.Namespace))
}

// noAccount is the refusal of what would fill the account.
func (r *room) noAccount() *schemas.Error {
	return schemas.Errorf(schemas.CodeLimit, "the account of NATS is full: all that is there has %d of %d bytes", r.bytes, r.limit).WithHint("%s", post.AccountRoomHint)
}

// noUploads is the refusal of an upload that would take what is left of the account or the server, or nil. Whose outcome it is, or input, is
// not known.
func (b *Broker) noUploads(ctx context.Context, q *schemas.UploadRequest) *schemas.Error {
	if q.WorkflowID != "" {
		return b.noRoomForStart(ctx, q.Size)
	}
	if r := b.whole.Load(); r != nil && r.share() >= uploadsFull {
		return r.noWhole()
	}
	ctx, cancel := context.WithTimeout(ctx, roomPatience)
	defer cancel()
	r, err := b.readRoom(ctx, b.ns.StreamPayloads())
	if err != nil || !r.account || r.share() < uploadsFull {
		return nil // the store is not made yet, or the upload itself will tell
	}
	return r.noAccount()
}

// noRoomForStart is the refusal of a start whose payloads of some bytes would take what is left of
// the server, the account or the object store, beside others that are on their way; nil if there is
// room. It looks anew each time: payloads are large.
func (b *Broker) noRoomForStart(ctx context.Context, bytes int64) *schemas.Error {
	bytes += b.storing.Load() + b.uploads.Promised()
	if b.o.Room != nil {
		r := &room{promised: bytes}
		if r.bytes, r.limit = b.o.Room(); r.full() {
			return r.noWhole()
		}
	}
	ctx, cancel := context.WithTimeout(ctx, roomPatience)
	defer cancel()
	r, err := b.readRoom(ctx, b.ns.StreamPayloads())
	if err != nil { // it is made with its first object
		r, err = b.readRoom(ctx, b.ns.StreamHistory(0))
		if !r.account {
			return nil
		}
	}
	if r.promised = bytes; err != nil || !r.full() {
		return nil // storing it will tell
	}
	if r.account {
		return r.noAccount()
	}
	return schemas.Errorf(schemas.CodeLimit, "the object store of namespace %q is full: it has %d of %d bytes", b.o.Namespace, r.bytes, r.limit).
		InField("maxBytes").WithHint("%s", post.RoomHint(nil, b.o.Namespace))
}

// fullError is the refusal of what a full inbox or signals stream has not stored.
func (b *Broker) fullError(err error) *schemas.Error {
	return schemas.Errorf(schemas.CodeLimit, "namespace %q is full: %v", b.o.Namespace, err).
		InField("maxBytes").WithHint("it was not stored; %s", post.RoomHint(err, b.o.Namespace))
}

package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

const (
	// quotaEvery is how often the room of a limited history is looked at, and quotaRarely that of
	// an unlimited one: a limit may be set later.
	quotaEvery  = 2 * time.Second
	quotaRarely = time.Minute
	// for a server that is nearly full, which is asked without a message
	quotaSoon = 50 * time.Millisecond
	// Above quotaFull percent of its bytes, or of those of its account, a history takes no new runs
	// and no signals through the API: what runs needs the rest, and so do the fences and claims of
	// owners. Without these nobody could purge what makes room.
	quotaFull = 90
	// uploadsFull is the share of its account after which no upload is taken, so that those of
	// starts that are refused do not use up the rest.
	uploadsFull = 0.95
	// quotaPatience bounds how long an upload waits for that, as while a cluster elects its leader.
	quotaPatience = time.Second
	// fullPause is how long a partition whose history takes nothing more waits before it is tried
	// again.
	fullPause = 2 * time.Second
	// maxDoublings of the shortest pause are more than fullPause.
	maxDoublings = 7
)

// quota is what is known of the limit that the partition comes to first: of its history, or of all
// streams of the account.
type quota struct {
	looked  time.Time
	busy    bool
	account bool  // it is that of the account
	limit   int64 // bytes; 0 or less is none
	bytes   int64
	// promised are bytes of starts that are begun and not sent yet: they come to bytes with their
	// records.
	promised int64
}

func (r *quota) full() bool { return r.limit > 0 && r.bytes+r.promised > r.limit/100*quotaFull }

// share is how much of the limit is used.
func (r *quota) share() float64 {
	if r.limit <= 0 {
		return 0
	}
	return float64(r.bytes) / float64(r.limit)
}

// readQuota asks what limit the stream comes to first.
func (b *env) readQuota(ctx context.Context, stream string) (quota, error) {
	js := b.reads.JetStream()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return quota{}, err
	}
	account, err := js.AccountInfo(ctx)
	if err != nil {
		return quota{}, err
	}
	info := s.CachedInfo()
	return closer(&info.Config, int64(info.State.Bytes), account), nil
}

// closer is the limit that a stream of so many bytes comes to first. An account has limits for each
// number of replicas, or one for all.
func closer(stream *jetstream.StreamConfig, bytes int64, account *jetstream.AccountInfo) quota {
	// What is used counts each copy. A limit of a tier counts one, the other all.
	copies := int64(stream.Replicas)
	tier, ok := account.Tiers[fmt.Sprintf("R%d", copies)]
	if !ok {
		tier, copies = account.Tier, 1
	}
	own := quota{limit: stream.MaxBytes, bytes: bytes}
	full := quota{account: true, limit: copies * tier.Limits.MaxStore, bytes: int64(tier.Store)}
	if stream.Storage == jetstream.MemoryStorage {
		full.limit, full.bytes = copies*tier.Limits.MaxMemory, int64(tier.Memory)
	}
	if full.limit > 0 && (own.limit <= 0 || full.share() > own.share()) {
		return full
	}
	return own
}

// noAccount is the refusal of what would fill the account.
func (r *quota) noAccount() *schemas.Error {
	return schemas.Errorf(schemas.CodeLimit, "the account of NATS is full: all that is there "+
		"has %d of %d bytes", r.bytes, r.limit).
		WithHint("%s", natsconn.AccountRoomHint)
}

// refuseStart is the refusal of a start whose payloads of some bytes would take what is left of
// the server, the account or the object store, beside others that are on their way; nil if there is
// room. It looks anew each time: payloads are large.
func (b *env) refuseStart(ctx context.Context, bytes int64) *schemas.Error {
	bytes += b.storing.Load() + b.promised()
	if b.o.Quota != nil {
		r := &quota{promised: bytes}
		if r.bytes, r.limit = b.o.Quota(); r.full() {
			return r.serverRefusal()
		}
	}
	ctx, cancel := context.WithTimeout(ctx, quotaPatience)
	defer cancel()
	r, err := b.readQuota(ctx, b.ns.StreamPayloads())
	if err != nil { // it is made with its first object
		r, err = b.readQuota(ctx, b.ns.StreamHistory(0))
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
	return schemas.Errorf(schemas.CodeLimit, "the object store of namespace %q is full: it has "+
		"%d of %d bytes", b.o.Namespace, r.bytes, r.limit).
		InField("maxBytes").
		WithHint("%s", natsconn.RoomHint(nil, b.o.Namespace))
}

// fullError is the refusal of what a full inbox or signals stream has not stored.
func (b *env) fullError(err error) *schemas.Error {
	return schemas.Errorf(schemas.CodeLimit, "namespace %q is full: %v", b.o.Namespace, err).
		InField("maxBytes").WithHint("it was not stored; %s", natsconn.RoomHint(err, b.o.Namespace))
}

package env

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

const (
	// QuotaEvery is how often the room of a limited history is looked at, and QuotaRarely that of
	// an unlimited one: a limit may be set later.
	QuotaEvery  = 2 * time.Second
	QuotaRarely = time.Minute
	// for a server that is nearly full, which is asked without a message
	quotaSoon = 50 * time.Millisecond
	// Above quotaFull percent of its bytes, or of those of its account, a history takes no new runs
	// and no signals through the API: what runs needs the rest, and so do the fences and claims of
	// owners. Without these nobody could purge what makes room.
	quotaFull = 90
	// UploadsFull is the share of its account after which no upload is taken, so that those of
	// starts that are refused do not use up the rest.
	UploadsFull = 0.95
	// QuotaPatience bounds how long an upload waits for that, as while a cluster elects its leader.
	QuotaPatience = time.Second
)

// Quota is what is known of the limit that the partition comes to first: of its history, or of all
// streams of the account.
type Quota struct {
	Looked  time.Time
	Busy    bool
	Account bool  // it is that of the account
	Limit   int64 // bytes; 0 or less is none
	Bytes   int64
	// Promised are bytes of starts that are begun and not sent yet: they come to bytes with their
	// records.
	Promised int64
}

func (r *Quota) Full() bool { return r.Limit > 0 && r.Bytes+r.Promised > r.Limit/100*quotaFull }

// Share is how much of the limit is used.
func (r *Quota) Share() float64 {
	if r.Limit <= 0 {
		return 0
	}
	return float64(r.Bytes) / float64(r.Limit)
}

// ReadQuota asks what limit the stream comes to first.
func (e *Env) ReadQuota(ctx context.Context, stream string) (Quota, error) {
	js := e.Reads.JetStream()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return Quota{}, err
	}
	account, err := js.AccountInfo(ctx)
	if err != nil {
		return Quota{}, err
	}
	info := s.CachedInfo()
	return closer(&info.Config, int64(info.State.Bytes), account), nil
}

// closer is the limit that a stream of so many bytes comes to first. An account has limits for each
// number of replicas, or one for all.
func closer(stream *jetstream.StreamConfig, bytes int64, account *jetstream.AccountInfo) Quota {
	// What is used counts each copy. A limit of a tier counts one, the other all.
	copies := int64(stream.Replicas)
	tier, ok := account.Tiers[fmt.Sprintf("R%d", copies)]
	if !ok {
		tier, copies = account.Tier, 1
	}
	own := Quota{Limit: stream.MaxBytes, Bytes: bytes}
	full := Quota{Account: true, Limit: copies * tier.Limits.MaxStore, Bytes: int64(tier.Store)}
	if stream.Storage == jetstream.MemoryStorage {
		full.Limit, full.Bytes = copies*tier.Limits.MaxMemory, int64(tier.Memory)
	}
	if full.Limit > 0 && (own.Limit <= 0 || full.Share() > own.Share()) {
		return full
	}
	return own
}

// NoAccount is the refusal of what would fill the account.
func (r *Quota) NoAccount() *schemas.Error {
	return schemas.Errorf(schemas.CodeLimit, "the account of NATS is full: all that is there "+
		"has %d of %d bytes", r.Bytes, r.Limit).WithHint("%s", natsconn.AccountRoomHint)
}

// RefuseStart is the refusal of a start whose payloads of some bytes would take what is left of
// the server, the account or the object store, beside others that are on their way; nil if there is
// room. It looks anew each time: payloads are large.
func (e *Env) RefuseStart(ctx context.Context, bytes int64) *schemas.Error {
	bytes += e.storing.Load() + e.Promised()
	if e.Options.Quota != nil {
		r := &Quota{Promised: bytes}
		if r.Bytes, r.Limit = e.Options.Quota(); r.Full() {
			return r.ServerRefusal()
		}
	}
	ctx, cancel := context.WithTimeout(ctx, QuotaPatience)
	defer cancel()
	r, err := e.ReadQuota(ctx, e.NS.StreamPayloads())
	if err != nil { // it is made with its first object
		r, err = e.ReadQuota(ctx, e.NS.StreamHistory(0))
		if !r.Account {
			return nil
		}
	}
	if r.Promised = bytes; err != nil || !r.Full() {
		return nil // storing it will tell
	}
	if r.Account {
		return r.NoAccount()
	}
	return schemas.Errorf(schemas.CodeLimit, "the object store of namespace %q is full: it has "+
		"%d of %d bytes", e.Options.Namespace, r.Bytes, r.Limit).InField("maxBytes").WithHint("%s",
		natsconn.RoomHint(nil, e.Options.Namespace))
}

// FullError is the refusal of what a full inbox or signals stream has not stored.
func (e *Env) FullError(err error) *schemas.Error {
	return schemas.Errorf(schemas.CodeLimit, "namespace %q is full: %v", e.Options.Namespace, err).
		InField("maxBytes").
		WithHint("it was not stored; %s", natsconn.RoomHint(err, e.Options.Namespace))
}

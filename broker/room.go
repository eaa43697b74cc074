package broker

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/schemas"
)

const (
	// roomEvery is how often the room of a limited history is looked at, and roomRarely that of an unlimited one: a limit
	// may be set later.
	roomEvery  = 2 * time.Second
	roomRarely = time.Minute
	// Above roomFull percent of its bytes a history takes no new runs and no signals through the API: what runs needs the
	// rest, and so do the fences of owners.
	roomFull = 90
	// fullPause is how long a partition whose history takes nothing more waits before it is tried again.
	fullPause = 2 * time.Second
)

// room is what is known of the limits of the partition's streams.
type room struct {
	looked time.Time
	busy   bool
	limit  int64 // bytes; 0 or less is none
	bytes  int64
}

func (r *room) full() bool { return r.limit > 0 && r.bytes > r.limit/100*roomFull }

// lookAtRoom asks how full the history is, once in a while.
func (p *partition) lookAtRoom() {
	every := roomRarely
	if p.room.limit > 0 {
		every = roomEvery
	}
	if p.room.busy || time.Since(p.room.looked) < every {
		return
	}
	p.room.busy, p.room.looked = true, time.Now()
	readAsync(p.b, p.loop, func(ctx context.Context) (*jetstream.StreamInfo, error) {
		s, err := p.b.reads.JetStream().Stream(ctx, p.b.ns.StreamHistory(p.n))
		if err != nil {
			return nil, err
		}
		return s.CachedInfo(), nil
	}, func(info *jetstream.StreamInfo, err error) {
		p.room.busy = false
		if err != nil {
			p.log.WithError(err).Debug("the size of the history cannot be read now")
			return
		}
		was := p.room.full()
		p.room.limit, p.room.bytes = info.Config.MaxBytes, int64(info.State.Bytes)
		if full := p.room.full(); full != was {
			p.log.WithField("bytes", p.room.bytes).WithField("limit", p.room.limit).WithField("full", full).Warn("the room for new workflows has changed")
		}
	})
}

// noRoom is the refusal of what would fill the history.
func (p *partition) noRoom() *schemas.Error {
	return schemas.Errorf(schemas.CodeLimit, "the histories of namespace %q are full: partition %d has %d of %d bytes", p.b.o.Namespace, p.n, p.room.bytes, p.room.limit).
		InField("maxBytes").WithHint("raise the limit: drover namespace create %s --max-bytes N", p.b.o.Namespace)
}

// fullError is the refusal of what a full inbox or signals stream has not stored.
func (b *Broker) fullError(err error) *schemas.Error {
	return schemas.Errorf(schemas.CodeLimit, "namespace %q is full: %v", b.o.Namespace, err).
		InField("maxBytes").WithHint("it was not stored; raise the limit: drover namespace create %s --max-bytes N", b.o.Namespace)
}

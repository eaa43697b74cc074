package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/clock"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/bucketkey"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// listPage is how many records are read in one round trip.
	listPage = 128
	// Between two questions for the server's time its clock is counted locally.
	askClockEvery = time.Minute
	shortPause    = 5 * time.Millisecond
	attempts      = 5

	stream = "KV_" + subject.BucketNodes
	prefix = "$KV." + subject.BucketNodes + "."
)

// Registry reads and writes the records of all nodes. All methods may be called by several
// goroutines. It has no goroutine of its own.
type Registry struct {
	conn    *natsconn.Conn
	opts    Options
	clock   clock.Server
	askedAt atomic.Pointer[time.Time] // when the server was last asked for its time
}

// Open prepares the register in the bucket that broker/topology has made. It does not talk to the
// server.
func Open(conn *natsconn.Conn, o Options) (*Registry, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	return &Registry{conn: conn, opts: o}, nil
}

// Info is one record, as it stands in the bucket.
type Info struct {
	schemas.NodeRecord
	Key       string
	Revision  uint64
	Stored    time.Time // when the server stored the record, by its clock
	Malformed bool      // the body is none of this package; only Key, Revision and Stored count
	// the record was taken away: what is left is a mark; only with [Registry.Sweep]
	Gone bool
}

// HeardAt is when the server stored the last heartbeat, by its clock. The master's mark is none.
func (i *Info) HeardAt() time.Time {
	if i.Status == schemas.NodeNotResponding && i.Heard != 0 {
		return i.Heard.Time()
	}
	return i.Stored
}

// ClockOffset is how far the node's clock is ahead of the server's, less the time that the
// heartbeat travelled.
func (i *Info) ClockOffset() time.Duration {
	if i.LastActive == 0 {
		return 0
	}
	return i.LastActive.Time().Sub(i.HeardAt())
}

// List tells which nodes have a record, sorted by name. Any replica may answer, so a record may be
// shown as it was a moment before.
func (r *Registry) List(ctx context.Context) ([]Info, error) {
	all, err := r.read(ctx)
	return slices.DeleteFunc(all, func(i Info) bool { return i.Gone }), err
}

// Now estimates the server's clock, never ahead of it. The zero time says that it is not known.
func (r *Registry) Now(ctx context.Context) time.Time {
	if at := r.askedAt.Load(); at == nil || time.Since(*at) >= askClockEvery {
		asking, cancel := r.conn.UntilRefused(ctx, "$JS.API.STREAM.INFO.")
		asked := time.Now()
		server, err := r.conn.StreamTime(asking, stream)
		cancel()
		received := time.Now()
		if err != nil {
			r.opts.Logger.WithField("err", err).Debug("the server did not tell its time")
		} else {
			r.clock.ObserveExchange(asked, server, received)
			r.askedAt.Store(&received)
		}
	}
	return r.clock.Now(time.Now())
}

// Alive tells whether a node was heard of lately, at the server's time now. Without that time every
// node counts as alive.
func (r *Registry) Alive(i *Info, now time.Time) bool {
	if i.Status == schemas.NodeNotResponding {
		return false
	}
	limit := max(r.opts.Threshold, beats*i.Heartbeat.Std())
	return now.IsZero() || now.Sub(i.Stored) < limit
}

// Find reads the record of a name from the bucket's leader. Without one the error wraps
// [ErrNoNode].
func (r *Registry) Find(ctx context.Context, name string) (*Info, error) {
	i, err := r.find(ctx, bucketkey.Escape(name))
	if err == nil && i.Gone {
		err = fmt.Errorf("%w: %s", ErrNoNode, name)
	}
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	return i, nil
}

// Remove takes the record of a dead node away. The error wraps [ErrAlive] if it is alive, and
// [ErrChanged] if it was changed since it was read.
func (r *Registry) Remove(ctx context.Context, i Info) error {
	if !i.Malformed && r.Alive(&i, r.Now(ctx)) {
		return fmt.Errorf(
			"nodes: %w: %s was heard of at %s: stop it with \"drover drain\", or wait until it does not respond",
			ErrAlive, i.Node, i.Stored.UTC().Format(time.RFC3339))
	}
	return r.remove(ctx, i.Key, i.Revision)
}

// find reads a key from the leader; Gone if there is nothing, or the mark of a removal.
func (r *Registry) find(ctx context.Context, key string) (*Info, error) {
	s, err := r.conn.LastBySubject(ctx, stream, prefix+key)
	if errors.Is(err, natsconn.ErrNotFound) {
		return &Info{Key: key, Gone: true}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", key, err)
	}
	r.clock.Observe(s.Time, time.Now())
	return info(s), nil
}

// read reads all keys, the marks of removals too.
func (r *Registry) read(ctx context.Context) ([]Info, error) {
	var all []Info
	for from, more := uint64(1), true; more; {
		var page []natsconn.Stored
		var err error
		page, more, err = r.conn.BatchGet(ctx, stream, prefix+">", from, listPage)
		if err != nil {
			return nil, fmt.Errorf("nodes: list bucket %s: %w", subject.BucketNodes, err)
		}
		for k := range page {
			from = page[k].Seq + 1
			all = append(all, *info(&page[k]))
		}
		more = more && len(page) > 0
	}
	// A record that was written between two pages comes twice; the newer one, which comes later, is
	// kept.
	slices.SortStableFunc(all, func(a, b Info) int { return strings.Compare(a.Key, b.Key) })
	slices.Reverse(all)
	all = slices.CompactFunc(all, func(a, b Info) bool { return a.Key == b.Key })
	slices.Reverse(all)
	return all, nil
}

func info(s *natsconn.Stored) *Info {
	i := &Info{Key: strings.TrimPrefix(s.Subject, prefix), Revision: s.Seq, Stored: s.Time}
	if s.Header.Get("KV-Operation") != "" || s.Header.Get("Nats-Marker-Reason") != "" {
		i.Gone = true
		return i
	}
	if err := json.Unmarshal(s.Data, &i.NodeRecord); err != nil || i.Node == "" ||
		bucketkey.Escape(i.Node) != i.Key {
		i.NodeRecord, i.Malformed = schemas.NodeRecord{}, true
	}
	return i
}

// write stores a record if the last revision of its key is rev.
func (r *Registry) write(ctx context.Context, rec *schemas.NodeRecord, rev uint64) (uint64, error) {
	rec.V = schemas.Version
	body, err := json.Marshal(rec)
	if err != nil {
		return 0, fmt.Errorf("record of %s: %w", rec.Node, err)
	}
	for range attempts {
		var got uint64
		got, err = r.conn.KVUpdate(ctx, subject.BucketNodes, bucketkey.Escape(rec.Node), body, rev,
			0)
		switch {
		case err == nil:
			return got, nil
		case errors.Is(err, natsconn.ErrInFlight):
			// on a cluster: somebody else's write is under way
			if sleep.For(ctx, shortPause) != nil {
				return 0, ctx.Err()
			}
		default:
			return 0, fmt.Errorf("record of %s: %w", rec.Node, err)
		}
	}
	return 0, fmt.Errorf("record of %s: %w", rec.Node, err)
}

// remove deletes a key if its revision is rev. It is no error if it is gone.
func (r *Registry) remove(ctx context.Context, key string, rev uint64) error {
	var err error
	for range attempts {
		err = r.conn.KVDelete(ctx, subject.BucketNodes, key, rev)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, natsconn.ErrInFlight):
			if sleep.For(ctx, shortPause) != nil {
				return fmt.Errorf("nodes: remove %s: %w", key, ctx.Err())
			}
		case errors.Is(err, natsconn.ErrWrongSequence):
			if i, readErr := r.find(ctx, key); readErr == nil && i.Gone {
				return nil
			}
			return fmt.Errorf("nodes: %w: %s", ErrChanged, key)
		default:
			return fmt.Errorf("nodes: remove %s: %w", key, err)
		}
	}
	return fmt.Errorf("nodes: remove %s: %w", key, err)
}

package recycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/ops/operations"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// The keys in the bucket of schedules.
const (
	keySet   = "recycle"
	keyState = "recycle.state"
)

const (
	attempts   = 8
	shortPause = 10 * time.Millisecond
)

// store is where a recycle is kept and told.
type store struct {
	conn  *natsconn.Conn
	ns    subject.Namespace
	notes *operations.Log
}

// set reads what is set; the zero value if nothing is.
func (b *store) set(ctx context.Context) (*ops.Recycle, uint64, error) {
	r := new(ops.Recycle)
	_, rev, err := b.read(ctx, keySet, r)
	return r, rev, err
}

// state reads the last notice; nil if there is none.
func (b *store) state(ctx context.Context) (*ops.RecycleNotice, uint64, error) {
	n := new(ops.RecycleNotice)
	found, rev, err := b.read(ctx, keyState, n)
	if !found {
		return nil, rev, err
	}
	return n, rev, nil
}

// read reads a key. A value that is none of ours counts as absent, and is written over.
func (b *store) read(ctx context.Context, key string, v any) (found bool, rev uint64, err error) {
	body, rev, err := b.conn.KVLast(ctx, b.ns.BucketSchedules(), key)
	if err != nil {
		return false, 0, fmt.Errorf("recycle: %w", err)
	}
	return body != nil && json.Unmarshal(body, v) == nil, rev, nil
}

// write writes a key whose last revision is rev.
func (b *store) write(ctx context.Context, key string, v any, rev uint64) error {
	body, err := schemas.MarshalJSON(v)
	if err != nil {
		return err
	}
	for range attempts {
		if _, err = b.conn.KVUpdate(ctx, b.ns.BucketSchedules(), key, body, rev, 0); !errors.Is(err,
			natsconn.ErrInFlight) {
			break
		}
		sleep.For(ctx, shortPause)
	}
	if err != nil {
		return fmt.Errorf("recycle: %w", err)
	}
	return nil
}

// say stores a notice if the last one has this revision, and publishes it.
func (b *store) say(ctx context.Context, n *ops.RecycleNotice, rev uint64) error {
	n.V = schemas.Version
	if err := b.write(ctx, keyState, n, rev); err != nil {
		return err
	}
	b.publish(ctx, n)
	return nil
}

// publish tells whoever listens, and notes it. What is heard by nobody is still stored.
func (b *store) publish(ctx context.Context, n *ops.RecycleNotice) {
	if body, err := schemas.MarshalJSON(n); err == nil {
		_ = b.conn.Publish(b.ns.NoticeRecycle(), nil, body)
	}
	reason := string(n.Phase)
	if n.Reason != "" {
		reason += ": " + n.Reason
	}
	b.notes.Note(ctx, ops.Operation{
		Kind:    ops.OperationRecycle,
		Subject: n.Node,
		Reason:  reason,
		Slot:    n.Slot,
	})
}

// sayOf stores and publishes what a node does in the recycle of a slot. If another recycle was
// announced meanwhile the state is that one's, and the notice is published alone.
func (b *store) sayOf(ctx context.Context, n ops.RecycleNotice) error {
	var err error
	for range attempts {
		var have *ops.RecycleNotice
		var rev uint64
		if have, rev, err = b.state(ctx); err != nil {
			return err
		}
		if have == nil || have.Slot != n.Slot {
			b.publish(ctx, &n)
			return nil
		}
		if err = b.say(ctx, &n, rev); !errors.Is(err, natsconn.ErrWrongSequence) {
			return err
		}
	}
	return err
}

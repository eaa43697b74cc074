package alwayson

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/bucketkey"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const keyPrefix = "always."

// markerTTL is how long the mark of a removed key stays.
const markerTTL = time.Minute

var (
	errDamaged = errors.New("the record of the always-on workflow cannot be read")
	// errOvertaken means that somebody else has written the record: read it again.
	errOvertaken = errors.New("the record has changed meanwhile")
)

func keyOf(id string) string { return keyPrefix + bucketkey.Escape(id) }

// load reads a record. Errors wrap [natsconn.ErrNotFound], [errDamaged], or are those of the
// stream.
func (m *Monitor) load(ctx context.Context, id string) (*record, uint64, error) {
	value, rev, err := m.o.Conn.KVGet(ctx, m.bucket, keyOf(id))
	if err != nil {
		return nil, 0, err
	}
	r := new(ops.AlwaysOnRecord)
	if err := schemas.Unmarshal(value, r); err != nil {
		return nil, rev, fmt.Errorf("%w: key %s: %w", errDamaged, keyOf(id), err)
	}
	if r.AlwaysOn.Start.WorkflowID != id || r.Incarnation == "" {
		return nil, rev, fmt.Errorf("%w: key %s has the workflow id %q and the incarnation %q",
			errDamaged, keyOf(id), r.AlwaysOn.Start.WorkflowID, r.Incarnation)
	}
	return (*record)(r), rev, nil
}

// put writes a record that has the revision still at which it was read; 0 makes a new one. It fails
// with [errOvertaken] if somebody else has written it.
func (m *Monitor) put(ctx context.Context, r *record, rev uint64) (uint64, error) {
	if err := m.before("write " + r.id()); err != nil {
		return 0, err
	}
	body, err := schemas.MarshalJSON((*ops.AlwaysOnRecord)(r))
	if err != nil {
		return 0, err
	}
	if rev == 0 {
		rev, err = m.o.Conn.KVCreate(ctx, m.bucket, keyOf(r.id()), body, 0)
	} else {
		rev, err = m.o.Conn.KVUpdate(ctx, m.bucket, keyOf(r.id()), body, rev, 0)
	}
	return rev, overtaken(err)
}

// drop removes a record.
func (m *Monitor) drop(ctx context.Context, r *record, rev uint64) error {
	if err := m.before("remove " + r.id()); err != nil {
		return err
	}
	_, err := m.o.Conn.KVExpunge(ctx, m.bucket, keyOf(r.id()), rev, markerTTL)
	return overtaken(err)
}

func overtaken(err error) error {
	if errors.Is(err, natsconn.ErrWrongSequence) || errors.Is(err, natsconn.ErrInFlight) {
		return fmt.Errorf("%w: %w", errOvertaken, err)
	}
	return err
}

// ids are those that have a key, also one that was removed a moment ago, in their order.
func (m *Monitor) ids(ctx context.Context) ([]string, error) {
	keys, err := m.o.Conn.KVMatching(ctx, m.bucket, keyPrefix+"*")
	if err != nil {
		return nil, err
	}
	var all []string
	for _, key := range keys {
		if id, ok := bucketkey.Unescape(strings.TrimPrefix(key, keyPrefix)); ok {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all, nil
}

// now is the time of the server.
func (m *Monitor) now(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return m.o.Conn.StreamTime(ctx, "KV_"+m.bucket)
}

package types

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/bucket"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// Options are what a table needs.
type Options struct {
	Conn, Reads *natsconn.Conn // to change the bucket by, and to follow it
	Bucket      string
	Require     bool // types that are not registered are refused
	Log         logrus.FieldLogger
	Now         func() schemas.Timestamp
	BodyLimit   func() int // bytes of the largest answer
	// Publish takes each new table for the core, the later the newer.
	Publish func(*execution.Types)
}

// Table is what a broker knows of the types bucket, and serves the verbs that change it. The bucket
// decides; the table only answers fast. It is filled to the bucket's proven end before the broker
// serves, follows the bucket from then on, and takes what this broker itself writes or reads at
// once: whoever was told of a change finds it here.
//
// The entries of a key are ordered by revision, so it does not matter which of the ways is faster.
// A bucket that was made anew begins a new epoch, because its revisions begin anew.
type Table struct {
	o       Options
	changed chan struct{} // holds a value when somebody should publish

	mu      sync.Mutex
	epoch   int
	seen    uint64           // last revision that the watch has brought in this epoch
	entries map[string]entry // by key of the bucket
	marks   []mark           // of this epoch, in the order in which the watch has brought them
	stale   bool             // they differ from what was published
}

type entry struct {
	info  *schemas.TypeInfo // nil: deleted, or no type
	rev   uint64
	epoch int
	size  int // of the stored value, bytes
}

// put takes an entry unless a later one is known; watched says that the watch has brought it.
func (t *Table) put(key string, e entry, watched bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if watched {
		t.seen = e.rev
	}
	if have, known := t.entries[key]; known && have.epoch == t.epoch && have.rev >= e.rev {
		return
	}
	e.epoch = t.epoch
	t.entries[key], t.stale = e, true
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

func (t *Table) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.epoch, t.seen, t.marks = t.epoch+1, 0, nil
}

func (t *Table) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.entries, func(_ string, e entry) bool { return e.epoch != t.epoch })
	t.stale = true
	t.publishHeld()
}

func (t *Table) Reached(rev uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen >= rev
}

func (t *Table) publish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.publishHeld()
}

// publishHeld makes a new table for the core if entries have changed. The caller holds mu, so that
// no older table follows a newer one.
func (t *Table) publishHeld() {
	if !t.stale {
		return
	}
	infos := make([]schemas.TypeInfo, 0, len(t.entries))
	for _, e := range t.entries {
		if e.info != nil {
			infos = append(infos, *e.info)
		}
	}
	t.o.Publish(execution.NewTypes(t.o.Require, infos))
	t.stale = false
}

// list returns the entries that have a type and match, in the order of kind, name and version.
func (t *Table) list(match func(*schemas.TypeInfo) bool) []entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []entry
	for _, e := range t.entries {
		if e.info != nil && match(e.info) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(x, y entry) int { return x.info.Compare(y.info) })
	return all
}

// Open reads the bucket to its end. A broker does so before it serves: else a restart would forget
// that a type is deprecated. The caller then runs follow, which follows the bucket until its
// context ends.
func Open(ctx context.Context, o Options) (t *Table, follow func(context.Context), err error) {
	t = &Table{o: o, changed: make(chan struct{}, 1), entries: map[string]entry{}}
	w := &bucket.Watch{
		Conn:   o.Reads,
		Bucket: o.Bucket,
		Holds:  "registered types",
		Table:  t,
		Log:    o.Log,
	}
	watch, err := w.Start(ctx)
	if err != nil {
		return nil, nil, err
	}
	return t, func(ctx context.Context) {
		var watching sync.WaitGroup
		watching.Go(func() { watch(ctx) })
		t.publishChanges(ctx)
		watching.Wait()
	}, nil
}

// publishChanges publishes whenever entries have changed, and now and then takes old marks away.
func (t *Table) publishChanges(ctx context.Context) {
	tick := time.NewTicker(markFor / 4)
	defer tick.Stop()
	for {
		select {
		case <-t.changed:
			t.publish()
		case now := <-tick.C:
			t.tidy(ctx, now)
		case <-ctx.Done():
			return
		}
	}
}

// casPause is between a refused compare-and-set and the next one.
const casPause = 5 * time.Millisecond

// Take puts what the watch brings into the table. What is no type counts as none.
func (t *Table) Take(key string, value []byte, rev uint64, deleted bool) {
	e := entry{rev: rev, size: len(value)}
	if !deleted {
		var err error
		if e.info, err = schemas.ParseTypeInfo(key, value); err != nil {
			t.o.Log.WithError(err).
				WithField("key", key).
				Warn("a key of the types bucket holds no type; " + noType(err))
		}
	}
	t.put(key, e, true)
	if deleted {
		t.marked(mark{key: key, rev: rev, seen: time.Now()})
	}
}

// Refusal says why a workflow of the request's type may not be started, or nil. now is the table
// that the broker goes by: the latest that was published.
func (t *Table) Refusal(now *execution.Types, q *schemas.StartRequest) *schemas.Error {
	named := &schemas.TypeRequest{Kind: schemas.WorkflowKind, Name: q.Type, Version: q.TypeVersion}
	switch _, cause := now.Workflow(q.Type, q.TypeVersion); cause {
	case "":
		return nil
	case schemas.CauseWorkflowTypeDeprecated:
		return schemas.Errorf(schemas.CodeDeprecated, "the type %s is deprecated", named).
			InField("type").
			WithHint("start another version of it, or undo that: drover type undeprecate %s", named)
	default:
		return schemas.Errorf(schemas.CodeNotFound,
			"the type %s is not registered, and the namespace demands it", named).
			InField("type").
			WithHint("%sregister it: drover type register %s", t.otherVersions(q.Type), named)
	}
}

// otherVersions is the way to a version of a workflow type that may be started, or empty.
func (t *Table) otherVersions(name string) string {
	const most = 8 // in a hint; the last ones in their order
	var versions []string
	for _, e := range t.list(func(i *schemas.TypeInfo) bool {
		return i.Kind == schemas.WorkflowKind && i.Name == name && i.Status != schemas.TypeDeprecated && i.Version != ""
	}) {
		versions = append(versions, strconv.Quote(e.info.Version))
	}
	if len(versions) == 0 {
		return ""
	}
	return "name with --type-version (typeVersion) one that is registered: " + strings.Join(
		versions[max(0, len(versions)-most):],
		", ",
	) + "; or "
}

// change carries a change out by compare-and-set: what it was decided upon is what it replaces.
// decide gets nil for a type that does not exist, and returns what it got if nothing is to be done,
// nil to delete. Every change is such that its repeat finds nothing to do, so a requester that
// heard no answer may ask again.
func (t *Table) change(
	ctx context.Context, key string, decide func(*schemas.TypeInfo) (*schemas.TypeInfo, error),
) (any, error) {
	for {
		now, rev, err := t.read(ctx, key)
		if err != nil {
			return nil, err
		}
		next, err := decide(now)
		if err != nil {
			return nil, err
		}
		if next == now {
			t.publish()
			return &schemas.TypeResponse{V: schemas.Version, Type: now}, nil
		}
		if err = t.write(ctx, key, next, rev); err == nil {
			t.publish()
			return &schemas.TypeResponse{
				V:       schemas.Version,
				Type:    cmp.Or(next, now),
				Changed: true,
			}, nil
		}
		if !errors.Is(err, natsconn.ErrWrongSequence) && !errors.Is(err, natsconn.ErrInFlight) ||
			sleep.For(ctx, casPause) != nil {
			return nil, typesUnavailable(err)
		}
	}
}

func typesUnavailable(err error) *schemas.Error {
	return schemas.Errorf(schemas.CodeUnavailable, "the bucket of types does not answer: %v", err).
		WithHint("try again; a repeat does no harm")
}

// noType says what to do about a key that holds no type.
func noType(err error) string {
	if errors.Is(err, schemas.ErrVersion) {
		return "update this server, or delete it if no later version has written it"
	}
	return "delete it"
}

// read asks the bucket's leader; without an error and a type the key has none.
func (t *Table) read(ctx context.Context, key string) (*schemas.TypeInfo, uint64, error) {
	value, rev, err := t.o.Conn.KVGet(ctx, t.o.Bucket, key)
	if errors.Is(err, natsconn.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, typesUnavailable(err)
	}
	i, err := schemas.ParseTypeInfo(key, value)
	if err != nil {
		return nil, 0, schemas.Errorf(schemas.CodeConflict, "the key %s of bucket %s holds no "+
			"type: %v", key, t.o.Bucket, err).
			WithHint("%s: nats kv del %s %s", noType(err), t.o.Bucket, key)
	}
	t.put(key, entry{info: i, rev: rev, size: len(value)}, false)
	return i, rev, nil
}

// write replaces revision rev, 0 for none; nil deletes.
func (t *Table) write(ctx context.Context, key string, next *schemas.TypeInfo, rev uint64) error {
	if next == nil {
		err := t.o.Conn.KVDelete(ctx, t.o.Bucket, key, rev)
		if err == nil {
			// the marker's sequence or less, and above what it deletes
			t.put(key, entry{rev: rev + 1}, false)
		}
		return err
	}
	value, err := schemas.MarshalJSON(next)
	if err != nil {
		return err
	}
	if rev == 0 {
		rev, err = t.o.Conn.KVCreate(ctx, t.o.Bucket, key, value, 0)
	} else {
		rev, err = t.o.Conn.KVUpdate(ctx, t.o.Bucket, key, value, rev, 0)
	}
	if err == nil {
		t.put(key, entry{info: next, rev: rev, size: len(value)}, false)
	}
	return err
}

func (t *Table) Register(ctx context.Context, q *schemas.TypeRegisterRequest) (any, error) {
	named := q.Type()
	return t.change(ctx, named.Key(), func(now *schemas.TypeInfo) (*schemas.TypeInfo, error) {
		if now != nil {
			if field := now.Differs(q); field != "" {
				return nil, schemas.Errorf(schemas.CodeAlreadyExists, "the type %s is "+
					"registered with another %s", named, field).
					InField(field).
					WithHint("a type never changes: register a new version, or see what is "+
						"there with drover type describe %s", named)
			}
			// also if it is deprecated: a worker that registers its types still has runs to serve
			return now, nil
		}
		if len(
			t.list(func(i *schemas.TypeInfo) bool { return i.Kind == q.Kind }),
		) >= schemas.MaxTypesOfAKind {
			return nil, schemas.Errorf(schemas.CodeLimit, "the namespace has %d %s types, and "+
				"more are not allowed", schemas.MaxTypesOfAKind, q.Kind).
				WithHint("delete those that are deprecated: drover type list --deprecated")
		}
		return q.Info(t.o.Now()), nil
	})
}

// SetStatus serves typeDeprecate and typeUndeprecate: it deprecates a type, or undoes that.
func SetStatus(
	status schemas.TypeStatus,
) func(*Table, context.Context, *schemas.TypeRequest) (any, error) {
	return func(t *Table, ctx context.Context, q *schemas.TypeRequest) (any, error) {
		return t.change(ctx, q.Key(), func(now *schemas.TypeInfo) (*schemas.TypeInfo, error) {
			if now == nil || now.Status == status {
				return now, unknownType(now, q)
			}
			next := *now
			next.Status, next.DeprecatedAt = status, 0
			if status == schemas.TypeDeprecated {
				next.DeprecatedAt = t.o.Now()
			}
			return &next, nil
		})
	}
}

// Remove leaves a marker in the bucket; by it a repeat is told from the deletion of what never was.
func (t *Table) Remove(ctx context.Context, q *schemas.TypeRequest) (any, error) {
	return t.change(ctx, q.Key(), func(now *schemas.TypeInfo) (*schemas.TypeInfo, error) {
		switch {
		case now == nil:
			_, err := bucket.Last(ctx, t.o.Reads, t.o.Bucket, q.Key())
			if errors.Is(err, natsconn.ErrNotFound) {
				return nil, unknownType(nil, q)
			}
			if err != nil {
				return nil, typesUnavailable(err)
			}
		case now.Status != schemas.TypeDeprecated:
			return nil, schemas.Errorf(schemas.CodeConflict, "the type %s is not deprecated", q).
				WithHint(
					"deprecate it first, and see that nobody misses it: drover type deprecate %s", q)
		}
		return nil, nil
	})
}

func (t *Table) Describe(ctx context.Context, q *schemas.TypeRequest) (any, error) {
	return t.change(ctx, q.Key(), func(now *schemas.TypeInfo) (*schemas.TypeInfo, error) {
		return now, unknownType(now, q)
	})
}

func unknownType(now *schemas.TypeInfo, q *schemas.TypeRequest) error {
	if now != nil {
		return nil
	}
	return schemas.Errorf(schemas.CodeNotFound, "the type %s is not registered", q).InField("name").
		WithHint("see what there is: drover type list --kind %s", q.Kind)
}

// List answers from the table.
func (t *Table) List(_ context.Context, q *schemas.TypeListRequest) (any, error) {
	var after schemas.TypeInfo
	if err := after.ParseCursor(q.Cursor); err != nil {
		return nil, err
	}
	limit, quota := runs.Limit(q.Limit), t.o.BodyLimit()/2
	a := &schemas.TypeListResponse{V: schemas.Version, Types: []schemas.TypeInfo{}}
	for _, e := range t.list(func(i *schemas.TypeInfo) bool { return i.Compare(&after) > 0 && q.Matches(i) }) {
		if quota -= 2 * e.size; len(a.Types) == limit || quota < 0 && len(a.Types) > 0 {
			a.Cursor = a.Types[len(a.Types)-1].Cursor()
			break
		}
		a.Types = append(a.Types, *e.info)
	}
	return a, nil
}

package broker

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

	"github.com/nats-io/nats.go/micro"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// typeTable is what a broker knows of the types bucket, and serves the verbs that change it. The bucket decides; the table
// only answers fast. It is filled to the bucket's proven end before the broker serves, follows the bucket from then on, and
// takes what this broker itself writes or reads at once: whoever was told of a change finds it here.
//
// The entries of a key are ordered by revision, so it does not matter which of the ways is faster. A bucket that was made
// anew begins a new epoch, because its revisions begin anew.
type typeTable struct {
	b       *Broker
	bucket  string
	changed chan struct{} // holds a value when somebody should publish

	mu      sync.Mutex
	epoch   int
	seen    uint64               // last revision that the watch has brought in this epoch
	entries map[string]typeEntry // by key of the bucket
	marks   []typeMark           // of this epoch, in the order in which the watch has brought them
	stale   bool                 // they differ from what was published
}

type typeEntry struct {
	info  *schemas.TypeInfo // nil: deleted, or no type
	rev   uint64
	epoch int
	size  int // of the stored value, bytes
}

// put takes an entry unless a later one is known; watched says that the watch has brought it.
func (t *typeTable) put(key string, e typeEntry, watched bool) {
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

func (t *typeTable) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.epoch, t.seen, t.marks = t.epoch+1, 0, nil
}

func (t *typeTable) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.entries, func(_ string, e typeEntry) bool { return e.epoch != t.epoch })
	t.stale = true
	t.publishHeld()
}

func (t *typeTable) Reached(rev uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen >= rev
}

func (t *typeTable) publish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.publishHeld()
}

// publishHeld makes a new table for the core if entries have changed. The caller holds mu, so that no older table follows a newer one.
func (t *typeTable) publishHeld() {
	if !t.stale {
		return
	}
	infos := make([]schemas.TypeInfo, 0, len(t.entries))
	for _, e := range t.entries {
		if e.info != nil {
			infos = append(infos, *e.info)
		}
	}
	t.b.setTypes(execution.NewTypes(t.b.o.RequireTypes, infos))
	t.stale = false
}

// list returns the entries that have a type and match, in the order of kind, name and version.
func (t *typeTable) list(match func(*schemas.TypeInfo) bool) []typeEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []typeEntry
	for _, e := range t.entries {
		if e.info != nil && match(e.info) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(x, y typeEntry) int { return x.info.Compare(y.info) })
	return all
}

// beginTypes reads the bucket to its end and follows it until the broker ends. A broker does so before it serves: else a
// restart would forget that a type is deprecated.
func (b *Broker) beginTypes(ctx context.Context) (*typeTable, error) {
	t := &typeTable{b: b, bucket: b.ns.BucketTypes(), changed: make(chan struct{}, 1), entries: map[string]typeEntry{}}
	w := &bucketWatch{b: b, bucket: t.bucket, holds: "registered types", table: t}
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	b.wg.Go(func() { t.publishChanges(b.ctx) })
	return t, nil
}

// publishChanges publishes whenever entries have changed, and now and then takes old marks away.
func (t *typeTable) publishChanges(ctx context.Context) {
	tick := time.NewTicker(typeMarkFor / 4)
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
func (t *typeTable) Take(key string, value []byte, rev uint64, deleted bool) {
	e := typeEntry{rev: rev, size: len(value)}
	if !deleted {
		var err error
		if e.info, err = schemas.ParseTypeInfo(key, value); err != nil {
			t.b.o.Logger.WithError(err).WithField("key", key).Warn("a key of the types bucket holds no type; " + noType(err))
		}
	}
	t.put(key, e, true)
	if deleted {
		t.marked(typeMark{key: key, rev: rev, seen: time.Now()})
	}
}

// refuseType says why a workflow of the request's type may not be started, or nil.
func (b *Broker) refuseType(q *schemas.StartRequest) *schemas.Error {
	t := &schemas.TypeRequest{Kind: schemas.WorkflowKind, Name: q.Type, Version: q.TypeVersion}
	switch _, cause := b.config().Types.Workflow(q.Type, q.TypeVersion); cause {
	case "":
		return nil
	case schemas.CauseWorkflowTypeDeprecated:
		return schemas.Errorf(schemas.CodeDeprecated, "the type %s is deprecated", t).InField("type").
			WithHint("start another version of it, or undo that: drover type undeprecate %s", t)
	default:
		return schemas.Errorf(schemas.CodeNotFound, "the type %s is not registered, and the namespace demands it", t).InField("type").
			WithHint("%sregister it: drover type register %s", b.otherVersions(q.Type), t)
	}
}

// otherVersions is the way to a version of a workflow type that may be started, or empty.
func (b *Broker) otherVersions(name string) string {
	const most = 8 // in a hint; the last ones in their order
	var versions []string
	for _, e := range b.types.list(func(i *schemas.TypeInfo) bool {
		return i.Kind == schemas.WorkflowKind && i.Name == name && i.Status != schemas.TypeDeprecated && i.Version != ""
	}) {
		versions = append(versions, strconv.Quote(e.info.Version))
	}
	if len(versions) == 0 {
		return ""
	}
	return "name with --type-version (typeVersion) one that is registered: " + strings.Join(versions[max(0, len(versions)-most):], ", ") + "; or "
}

// serveType answers a request about types, which is checked first.
func serveType[Request any, Q interface {
	*Request
	Validate() *schemas.Error
}](t *typeTable, r micro.Request, serve func(*typeTable, context.Context, Q) (any, error)) {
	q := Q(new(Request))
	if err := requested(r, q); err != nil {
		t.b.refuse(r, invalid(err))
		return
	}
	if err := q.Validate(); err != nil {
		t.b.refuse(r, err)
		return
	}
	answer := t.b.background
	if _, all := any(q).(*schemas.TypeListRequest); all {
		answer = t.b.scan
	}
	answer(r, func(ctx context.Context) (any, error) { return serve(t, ctx, q) })
}

// change carries a change out by compare-and-set: what it was decided upon is what it replaces. decide gets nil for a type
// that does not exist, and returns what it got if nothing is to be done, nil to delete. Every change is such that its
// repeat finds nothing to do, so a requester that heard no answer may ask again.
func (t *typeTable) change(ctx context.Context, key string, decide func(*schemas.TypeInfo) (*schemas.TypeInfo, error)) (any, error) {
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
			return &schemas.TypeResponse{V: schemas.Version, Type: cmp.Or(next, now), Changed: true}, nil
		}
		if !errors.Is(err, natsconn.ErrWrongSequence) && !errors.Is(err, natsconn.ErrInFlight) || sleep.For(ctx, casPause) != nil {
			return nil, typesUnavailable(err)
		}
	}
}

func typesUnavailable(err error) *schemas.Error {
	return schemas.Errorf(schemas.CodeUnavailable, "the bucket of types does not answer: %v", err).WithHint("try again; a repeat does no harm")
}

// noType says what to do about a key that holds no type.
func noType(err error) string {
	if errors.Is(err, schemas.ErrVersion) {
		return "update this server, or delete it if no later version has written it"
	}
	return "delete it"
}

// read asks the bucket's leader; without an error and a type the key has none.
func (t *typeTable) read(ctx context.Context, key string) (*schemas.TypeInfo, uint64, error) {
	value, rev, err := t.b.conn.KVGet(ctx, t.bucket, key)
	if errors.Is(err, natsconn.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, typesUnavailable(err)
	}
	i, err := schemas.ParseTypeInfo(key, value)
	if err != nil {
		return nil, 0, schemas.Errorf(schemas.CodeConflict, "the key %s of bucket %s holds no type: %v", key, t.bucket, err).
			WithHint("%s: nats kv del %s %s", noType(err), t.bucket, key)
	}
	t.put(key, typeEntry{info: i, rev: rev, size: len(value)}, false)
	return i, rev, nil
}

// write replaces revision rev, 0 for none; nil deletes.
func (t *typeTable) write(ctx context.Context, key string, next *schemas.TypeInfo, rev uint64) error {
	if next == nil {
		err := t.b.conn.KVDelete(ctx, t.bucket, key, rev)
		if err == nil {
			t.put(key, typeEntry{rev: rev + 1}, false) // the marker's sequence or less, and above what it deletes
		}
		return err
	}
	value, err := schemas.MarshalJSON(next)
	if err != nil {
		return err
	}
	if rev == 0 {
		rev, err = t.b.conn.KVCreate(ctx, t.bucket, key, value, 0)
	} else {
		rev, err = t.b.conn.KVUpdate(ctx, t.bucket, key, value, rev, 0)
	}
	if err == nil {
		t.put(key, typeEntry{info: next, rev: rev, size: len(value)}, false)
	}
	return err
}

func (t *typeTable) register(ctx context.Context, q *schemas.TypeRegisterRequest) (any, error) {
	named := q.Type()
	return t.change(ctx, named.Key(), func(now *schemas.TypeInfo) (*schemas.TypeInfo, error) {
		if now != nil {
			if field := now.Differs(q); field != "" {
				return nil, schemas.Errorf(schemas.CodeAlreadyExists, "the type %s is registered with another %s", named, field).InField(field).
					WithHint("a type never changes: register a new version, or see what is there with drover type describe %s", named)
			}
			return now, nil // also if it is deprecated: a worker that registers its types still has runs to serve
		}
		if len(t.list(func(i *schemas.TypeInfo) bool { return i.Kind == q.Kind })) >= schemas.MaxTypesOfAKind {
			return nil, schemas.Errorf(schemas.CodeLimit, "the namespace has %d %s types, and more are not allowed", schemas.MaxTypesOfAKind, q.Kind).
				WithHint("delete those that are deprecated: drover type list --deprecated")
		}
		return q.Info(t.b.now()), nil
	})
}

// setTypeStatus serves typeDeprecate and typeUndeprecate.
func setTypeStatus(status schemas.TypeStatus) func(*typeTable, context.Context, *schemas.TypeRequest) (any, error) {
	return func(t *typeTable, ctx context.Context, q *schemas.TypeRequest) (any, error) {
		return t.change(ctx, q.Key(), func(now *schemas.TypeInfo) (*schemas.TypeInfo, error) {
			if now == nil || now.Status == status {
				return now, unknownType(now, q)
			}
			next := *now
			next.Status, next.DeprecatedAt = status, 0
			if status == schemas.TypeDeprecated {
				next.DeprecatedAt = t.b.now()
			}
			return &next, nil
		})
	}
}

// remove leaves a marker in the bucket; by it a repeat is told from the deletion of what never was.
func (t *typeTable) remove(ctx context.Context, q *schemas.TypeRequest) (any, error) {
	return t.change(ctx, q.Key(), func(now *schemas.TypeInfo) (*schemas.TypeInfo, error) {
		switch {
		case now == nil:
			_, err := t.b.lastOf(ctx, t.bucket, q.Key())
			if errors.Is(err, natsconn.ErrNotFound) {
				return nil, unknownType(nil, q)
			}
			if err != nil {
				return nil, typesUnavailable(err)
			}
		case now.Status != schemas.TypeDeprecated:
			return nil, schemas.Errorf(schemas.CodeConflict, "the type %s is not deprecated", q).
				WithHint("deprecate it first, and see that nobody misses it: drover type deprecate %s", q)
		}
		return nil, nil
	})
}

func (t *typeTable) describe(ctx context.Context, q *schemas.TypeRequest) (any, error) {
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

// answerList answers from the table.
func (t *typeTable) answerList(_ context.Context, q *schemas.TypeListRequest) (any, error) {
	var after schemas.TypeInfo
	if err := after.ParseCursor(q.Cursor); err != nil {
		return nil, err
	}
	limit, quota := runs.Limit(q.Limit), t.b.bodyLimit()/2
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

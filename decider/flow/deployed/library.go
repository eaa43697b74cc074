package deployed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/store"
	"github.com/droverhq/drover/schemas"
)

const (
	defaultKept = 100
	// readTimeout bounds a read that several runs wait for.
	readTimeout = 5 * time.Second
)

// library is the [flow.Store] of one namespace.
type library struct {
	bucket reader
	most   int

	mu      sync.Mutex
	kept    map[edition]*model.Definition
	current map[string]*queue // by name, while somebody asks
}

// reader is what the library needs of a [store.Store].
type reader interface {
	Get(
		ctx context.Context, kind store.Kind, name, version string,
	) (*model.Definition, string, error)
	Current(ctx context.Context, kind store.Kind, name string) (version string, err error)
}

type edition struct{ name, version string }

func newLibrary(bucket reader, most int) *library {
	if most <= 0 {
		most = defaultKept
	}
	return &library{
		bucket: bucket, most: most, kept: map[edition]*model.Definition{},
		current: map[string]*queue{},
	}
}

// Definition implements [flow.Store]. The namespace is that of the library.
func (l *library) Definition(
	ctx context.Context, _, name, version string,
) (*model.Definition, string, error) {
	if version == "" {
		var err error
		if version, err = l.now(ctx, name); err != nil {
			return nil, "", explain(err)
		}
	}
	l.mu.Lock()
	d := l.kept[edition{name, version}]
	l.mu.Unlock()
	if d != nil {
		return d, version, nil
	}
	d, version, err := l.bucket.Get(ctx, store.Flow, name, version)
	if err != nil {
		return nil, "", explain(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for other := range l.kept {
		if len(l.kept) < l.most {
			break
		}
		delete(l.kept, other) // any: it is read again when it is needed
	}
	l.kept[edition{name, version}] = d
	return d, version, nil
}

// explain tells what is not there, which no patience brings, from what may come.
func explain(err error) error {
	if e, ok := errors.AsType[*schemas.Error](err); ok &&
		(e.Code == schemas.CodeNotFound || e.Code == schemas.CodeInvalid) {
		return fmt.Errorf("%w: %w", flow.ErrNoDefinition, err) // the hint is part of its text
	}
	return err
}

// queue are those who ask for the current version of a name. One read goes on at a time; whoever
// comes meanwhile waits for the next one, because the one under way may have looked before a
// deployment that they know of.
type queue struct {
	next *look // for those who came since the read under way began; nil if there are none
}

type look struct {
	done    chan struct{}
	version string
	err     error
}

// now reads which version is current, together with all who ask at that time.
func (l *library) now(ctx context.Context, name string) (string, error) {
	l.mu.Lock()
	q, busy := l.current[name]
	if !busy {
		q = &queue{}
		l.current[name] = q
	}
	if q.next == nil {
		q.next = &look{done: make(chan struct{})}
	}
	mine := q.next
	l.mu.Unlock()
	if !busy {
		go l.work(name, q)
	}
	select {
	case <-mine.done:
		return mine.version, mine.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// work reads for those who wait until nobody does.
func (l *library) work(name string, q *queue) {
	for {
		l.mu.Lock()
		now := q.next
		q.next = nil
		if now == nil {
			delete(l.current, name)
		}
		l.mu.Unlock()
		if now == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		now.version, now.err = l.bucket.Current(ctx, store.Flow, name)
		cancel()
		close(now.done)
	}
}

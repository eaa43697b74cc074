package claims

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/droverhq/drover/internal/sleep"
)

// watchRetry is the pause before the bucket is watched again. Waiters poll meanwhile.
const watchRetry = time.Second

// watch tells those who wait for a key that it was deleted, and others of every change. It follows
// the bucket while there is one of them, once for all.
type watch struct {
	claims *Claims

	mu       sync.Mutex
	waiting  map[string]map[chan struct{}]struct{}
	watchers map[*watcher]struct{}
	number   int // of both
	others   others
	stop     context.CancelFunc
	ended    chan struct{}
}

// enter returns a channel that gets a value after each deletion of the key, until leave is called.
func (w *watch) enter(key string) (freed <-chan struct{}, leave func()) {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = map[string]map[chan struct{}]struct{}{}
	}
	if w.waiting[key] == nil {
		w.waiting[key] = map[chan struct{}]struct{}{}
	}
	w.waiting[key][ch] = struct{}{}
	w.begin()
	return ch, func() { w.leave(func() { delete(w.waiting[key], ch) }) }
}

// begin counts one more. The caller holds mu.
func (w *watch) begin() {
	if w.number++; w.number == 1 {
		var ctx context.Context
		ctx, w.stop = context.WithCancel(context.Background())
		w.ended = make(chan struct{})
		go w.follow(ctx, w.ended)
	}
}

func (w *watch) leave(remove func()) {
	w.mu.Lock()
	remove()
	w.number--
	last, ended := w.number == 0, w.ended
	if last {
		w.stop()
	}
	w.mu.Unlock()
	if last {
		<-ended
	}
}

// follow watches the bucket until ctx ends.
func (w *watch) follow(ctx context.Context, ended chan<- struct{}) {
	defer close(ended)
	c := w.claims
	missed := make(chan struct{})
	go func() {
		defer close(missed)
		c.miss(ctx)
	}()
	defer func() { <-missed }()
	for ctx.Err() == nil {
		r, err := c.conn.KVWatch(ctx, c.bucket,
			func(key string, value []byte, rev uint64, deleted bool) {
				c.note(key, value, rev, deleted)
				w.show(key, deleted)
				if deleted {
					w.tell(key)
				}
			})
		if err == nil {
			select {
			case <-r.Done():
				err = r.Err()
			case <-ctx.Done():
				r.Close()
				<-r.Done()
				return
			}
		}
		c.log.WithField("err", err).Debug("claims are not watched, trying again")
		sleep.For(ctx, watchRetry)
	}
}

func (w *watch) tell(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range w.waiting[key] {
		select {
		case ch <- struct{}{}:
		default: // it has not looked since the last one
		}
	}
}

// watcher is one call of Watch.
type watcher struct {
	prefix string
	fn     func(key string, deleted bool)
}

// Watch calls fn with each key that begins with prefix, now and after every change, until stop is
// called, in the order of the bucket: whoever waits in [Claims.Hold] for a key that was deleted
// after another learns of it after fn has been told of the other. fn must be quick. A change can be
// missed, and a key that has expired may be shown: look at [Claims.List] too.
func (c *Claims) Watch(prefix string, fn func(key string, deleted bool)) (stop func()) {
	w, s := &c.watch, &watcher{prefix, fn}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watchers == nil {
		w.watchers = map[*watcher]struct{}{}
	}
	w.watchers[s] = struct{}{}
	w.begin()
	return sync.OnceFunc(func() { w.leave(func() { delete(w.watchers, s) }) })
}

func (w *watch) show(key string, deleted bool) {
	w.mu.Lock()
	var told []*watcher
	for s := range w.watchers {
		if strings.HasPrefix(key, s.prefix) {
			told = append(told, s)
		}
	}
	w.mu.Unlock()
	for _, s := range told {
		s.fn(key, deleted)
	}
}

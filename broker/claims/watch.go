package claims

import (
	"context"
	"sync"
	"time"
)

// watchRetry is the pause before the bucket is watched again. Waiters poll meanwhile.
const watchRetry = time.Second

// watch tells those who wait for a key that it was deleted. It follows the bucket while somebody waits, once for all
// of them.
type watch struct {
	claims *Claims

	mu      sync.Mutex
	waiting map[string]map[chan struct{}]struct{}
	number  int
	stop    context.CancelFunc
	ended   chan struct{}
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
	if w.number++; w.number == 1 {
		var ctx context.Context
		ctx, w.stop = context.WithCancel(context.Background())
		w.ended = make(chan struct{})
		go w.follow(ctx, w.ended)
	}
	return ch, func() { w.leave(key, ch) }
}

func (w *watch) leave(key string, ch chan struct{}) {
	w.mu.Lock()
	delete(w.waiting[key], ch)
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
	for ctx.Err() == nil {
		r, err := c.conn.KVWatch(ctx, c.bucket, func(key string, _ []byte, _ uint64, deleted bool) {
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
		pause(ctx, watchRetry)
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

package schedules

import (
	"context"
	"sync"
	"time"
)

// mostRush is how long nothing is written for the sake of the starts that are under way.
const mostRush = 500 * time.Millisecond

// rush counts the starts that are under way, from the decision to the answer. Many slots of one
// instant come before what is to be written of those that have an answer.
type rush struct {
	mu   sync.Mutex
	n    int
	over chan struct{} // closed when there are none; nil if there are none
}

// enter counts one; leave may be called more than once.
func (r *rush) enter() (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n++; r.n == 1 {
		r.over = make(chan struct{})
	}
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.n--; r.n == 0 {
			close(r.over)
			r.over = nil
		}
	})
}

// wait returns when no start is under way, or after a while.
func (r *rush) wait(ctx context.Context) {
	r.mu.Lock()
	over := r.over
	r.mu.Unlock()
	if over == nil {
		return
	}
	limit := time.NewTimer(mostRush)
	defer limit.Stop()
	select {
	case <-over:
	case <-limit.C:
	case <-ctx.Done():
	}
}

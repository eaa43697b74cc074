package coroutine_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/internal/virtual"
)

// limit is that of evictions.
const limit = time.Second

// rig is a dispatcher and what its coroutines have done. The test ends in failure if a goroutine is
// left: so does each bubble.
type rig struct {
	*coroutine.Dispatcher
	t     *testing.T
	trace []string
}

// inBubble runs fn in virtual time, and evicts what is left.
func inBubble(t *testing.T, fn func(r *rig)) {
	t.Helper()
	virtual.Bubble(t, func(t *testing.T) {
		r := &rig{Dispatcher: coroutine.New(), t: t}
		defer r.Evict(limit) // if the test fails: else the bubble would complain of what is left
		fn(r)
		r.evict()
	})
}

// inRealTime is for what a bubble takes for work, such as a locked mutex.
func inRealTime(t *testing.T, fn func(r *rig)) {
	t.Helper()
	fn(&rig{Dispatcher: coroutine.New(), t: t})
	poll.Until(t, time.Minute, "all coroutines end", func() bool {
		buf := make([]byte, 1<<20)
		return !strings.Contains(string(buf[:runtime.Stack(buf, true)]), "/coroutine.begin(")
	})
}

func (r *rig) say(format string, args ...any) {
	r.trace = append(r.trace, fmt.Sprintf(format, args...))
}

// run runs what is ready, without a failure.
func (r *rig) run() {
	r.t.Helper()
	if err := r.Run(); err != nil {
		r.t.Fatal(err)
	}
}

// evict evicts all, without a problem.
func (r *rig) evict() {
	r.t.Helper()
	if problems := r.Evict(limit); len(problems) > 0 {
		r.t.Fatal(problems)
	}
	if n := r.Live(); n != 0 {
		r.t.Fatalf("%d coroutines are alive after the eviction", n)
	}
}

// want compares what the coroutines have done since the last time.
func (r *rig) want(want ...string) {
	r.t.Helper()
	if got := strings.Join(r.trace, ", "); got != strings.Join(want, ", ") {
		r.t.Fatalf("got  %s\nwant %s", got, strings.Join(want, ", "))
	}
	r.trace = nil
}

// call is an API call that waits as long as it is told to.
func (r *rig) call(op string) error {
	c, err := r.Enter(op)
	if err != nil {
		return err
	}
	c.Park()
	return nil
}

// wantFailure checks a failure: its kind, its coroutine, and the words of its text.
func wantFailure(t *testing.T, err error, kind coroutine.Kind, name string, words ...string) *coroutine.Error {
	t.Helper()
	e, ok := errors.AsType[*coroutine.Error](err)
	if !ok || e.Kind != kind || e.Coroutine != name {
		t.Fatalf("got %v, want kind %d of coroutine %q", err, kind, name)
	}
	for _, w := range append(words, " at ", "_test.go:") {
		if !strings.Contains(e.Error(), w) {
			t.Fatalf("%q does not say %q", e, w)
		}
	}
	return e
}

// yield lets the others run that are ready.
func yield(c *coroutine.Coroutine) {
	c.Ready()
	c.Park()
}

// wait waits until the next Wake.
func wait(w *coroutine.Waiters, c *coroutine.Coroutine) {
	w.Add(c)
	c.Park()
	w.Remove(c)
}

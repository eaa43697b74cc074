package deployed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/decider/flow/define"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/store"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// bucket is a store of one flow, of which a read takes a second and sees what was deployed when it began.
type bucket struct {
	mu      sync.Mutex
	latest  int
	err     error
	current int // reads of the current key
	read    int // reads of definitions
	busy    int
	most    int
}

func definition(n int) *model.Definition {
	r, err := define.Parse("f.yaml", fmt.Appendf(nil, "name: f\nsteps: [log %d]", n), nil)
	if err != nil {
		panic(err)
	}
	return r.Definition
}

func (b *bucket) Current(context.Context, store.Kind, string) (string, error) {
	b.mu.Lock()
	b.current++
	b.busy++
	b.most = max(b.most, b.busy)
	n, err := b.latest, b.err
	b.mu.Unlock()
	time.Sleep(time.Second)
	b.mu.Lock()
	b.busy--
	b.mu.Unlock()
	return fmt.Sprint(n), err
}

func (b *bucket) Get(_ context.Context, _ store.Kind, _, version string) (*model.Definition, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read++
	var n int
	if _, err := fmt.Sscan(version, &n); err != nil {
		return nil, "", schemas.Errorf(schemas.CodeInvalid, "no version %s", version)
	}
	return definition(n), version, b.err
}

func (b *bucket) deploy(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latest = n
}

func (b *bucket) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (l *library) queues() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.current)
}

// Many runs that begin at once cost few reads, and none of them gets a version that was replaced before it began.
func TestCurrentIsNeverOlderThanTheStart(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		b := &bucket{}
		l := newLibrary(b, 0)
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				b.deploy(i)
				_, version, err := l.Definition(t.Context(), "", "f", "")
				var got int
				if _, bad := fmt.Sscan(version, &got); err != nil || bad != nil || got < i {
					t.Errorf("start %d got version %q and %v, want %d or a later one", i, version, err, i)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if b.most != 1 || b.current > 6 || l.queues() != 0 {
			t.Errorf("%d reads, %d at a time, and %d queues are left: want one at a time in 4 seconds, and none left", b.current, b.most, l.queues())
		}
	})
}

func TestVersionsAreReadOnce(t *testing.T) {
	b := &bucket{}
	l := newLibrary(b, 3)
	for range 5 {
		for _, v := range []string{"1", "2"} {
			d, got, err := l.Definition(t.Context(), "", "f", v)
			if err != nil || got != v || d.Version() != definition(int(v[0]-'0')).Version() {
				t.Fatalf("got %v, %q and %v", d, got, err)
			}
		}
	}
	if b.read != 2 {
		t.Errorf("got %d reads, want 2", b.read)
	}
	for i := range 20 {
		if _, _, err := l.Definition(t.Context(), "", "f", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.kept) > 3 {
		t.Errorf("%d versions are kept, want 3", len(l.kept))
	}
}

func TestErrorsOfTheLibrary(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		b := &bucket{err: schemas.Errorf(schemas.CodeNotFound, "there is no flow f").WithHint("deploy it")}
		l := newLibrary(b, 0)
		for version, want := range map[string]string{"": "there is no flow f (deploy it)", "x": "no version x"} { // with the hint once, if there is one
			_, _, err := l.Definition(t.Context(), "", "f", version)
			if !errors.Is(err, flow.ErrNoDefinition) {
				t.Errorf("version %q: got %v, want ErrNoDefinition", version, err)
			}
			if got, want := fmt.Sprint(err), "there is no such flow: "+want; got != want {
				t.Errorf("version %q: got %q, want %q", version, got, want)
			}
		}
		b.fail(errors.New("no leader"))
		for _, version := range []string{"", "1"} {
			if _, _, err := l.Definition(t.Context(), "", "f", version); err == nil || errors.Is(err, flow.ErrNoDefinition) {
				t.Errorf("version %q: got %v, want an error that may pass", version, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, _, err := l.Definition(ctx, "", "f", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context", err)
		}
		time.Sleep(time.Minute) // the read goes on for others, and ends
		if l.queues() != 0 {
			t.Error("a queue is left")
		}
	})
}

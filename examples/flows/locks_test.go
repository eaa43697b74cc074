package flows_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// slow is a site whose every call takes a minute. It knows what was called, in which order, and how many at a time.
type slow struct {
	mu         sync.Mutex
	called     []string
	busy, most int
}

func (s *slow) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	s.called = append(s.called, strings.TrimSpace(r.URL.Path+" "+string(body)))
	if err != nil {
		s.called = append(s.called, err.Error())
	}
	s.busy++
	s.most = max(s.most, s.busy)
	s.mu.Unlock()
	select {
	case <-time.After(time.Minute):
	case <-r.Context().Done():
	}
	s.mu.Lock()
	s.busy--
	s.mu.Unlock()
}

// seen compares what was called, and demands that there was never more than one call at a time.
func (s *slow) seen(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(want, s.called); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if s.most != 1 {
		t.Errorf("up to %d calls at a time, want 1", s.most)
	}
}

// A0-1, A0-2, A0-3: start and stop wait for each other and for themselves, in the order in which they came, and tell for whom.
func TestStartStop(t *testing.T) {
	site := &slow{}
	live(t, nil, []string{"start", "stop"}, nil, site, func(t *testing.T, h *house) {
		var runs []*drover.Run
		for i, typ := range []string{"start", "stop", "start"} {
			runs = append(runs, h.start(typ, fmt.Sprint(typ, i), nil))
			h.Sleep(time.Second)
		}
		why, err := runs[2].Why(t.Context())
		if err != nil || !strings.Contains(why, "start-stop") || !strings.Contains(why, "start0") {
			t.Errorf("why does start2 wait: got %q (%v), want the lock and its holder", why, err)
		}
		for l, err := range h.Client.Locks(t.Context(), drover.LocksOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if l.Lock != "start-stop" || len(l.Holders) != 1 || l.Holders[0].WorkflowID != "start0" || len(l.Waiters) != 2 || l.Waiters[0].WorkflowID != "stop1" {
				t.Errorf("got %+v, want start0 before stop1 and start2", l)
			}
		}
		for _, run := range runs {
			if out := h.Wait(run); out.Status != schemas.StatusCompleted {
				t.Errorf("%s: got %+v, want completed", run.ID, out)
			}
		}
		site.seen(t, "/start", "/stop", "/start")
	})
}

// A0-4, A0-5: the server dies while start runs, and nobody gets in between; when an operator cancels it, stop may run.
func TestStartIsInterruptedAndCanceled(t *testing.T) {
	site := &slow{}
	live(t, nil, []string{"start", "stop"}, nil, site, func(t *testing.T, h *house) {
		first := h.start("start", "first", nil)
		h.Sleep(time.Second)
		next := h.start("stop", "next", nil)
		h.Sleep(time.Second)
		h.Crash(2 * time.Second) // shorter than the lease on a task, so that what runs at the worker goes on
		h.Sleep(10 * time.Second)
		site.seen(t, "/start")
		if err := first.Cancel(t.Context(), "it takes too long"); err != nil {
			t.Fatal(err)
		}
		if out := h.Wait(first); out.Status != schemas.StatusCanceled {
			t.Errorf("first: got %+v, want canceled", out)
		}
		if out := h.Wait(next); out.Status != schemas.StatusCompleted {
			t.Errorf("next: got %+v, want completed", out)
		}
		site.seen(t, "/start", "/stop")
	})
}

// A0-1, A0-17: a lock in a step type guards all flows that use the type.
func TestAptGet(t *testing.T) {
	site := &slow{}
	live(t, []string{"apt-get"}, []string{"install"}, nil, site, func(t *testing.T, h *house) {
		var runs []*drover.Run
		var want []string
		for _, p := range []string{"iputils-ping", "curl", "jq"} {
			runs = append(runs, h.start("install", "install-"+p, map[string]string{"package": p}))
			want = append(want, "/ sudo apt-get install -y "+p)
			h.Sleep(time.Second)
		}
		for i, p := range []string{"iputils-ping", "curl", "jq"} {
			h.completes(runs[i], `"`+p+` is installed"`)
		}
		site.seen(t, want...)
	})
}

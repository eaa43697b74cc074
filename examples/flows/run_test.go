package flows_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// count is a site that keeps one number: GET reads it, PUT writes it.
type count struct {
	mu     sync.Mutex
	n      int
	writes []int
	fault  func(method string) (before, later bool) // the connection breaks; nil: never
}

func (c *count) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, later := false, false
	if c.fault != nil {
		before, later = c.fault(r.Method)
	}
	if before {
		panic(http.ErrAbortHandler)
	}
	if r.Method == http.MethodPut {
		if err := json.NewDecoder(r.Body).Decode(&c.n); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.writes = append(c.writes, c.n)
	}
	if later {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, c.n)
}

const countURL = "http://counts.example/orders"

// A0-13, A0-17: ten runs at a time add ten, each once and by one more than the one before.
func TestCounter(t *testing.T) {
	c := &count{n: 41}
	live(t, nil, []string{"counter"}, nil, c, func(t *testing.T, h *house) {
		var runs []*drover.Run
		for i := range 10 {
			runs = append(runs, h.start("counter", fmt.Sprint("c-", i), map[string]string{"url": countURL}))
		}
		var want []int
		for i, run := range runs {
			if out := h.Wait(run); out.Status != schemas.StatusCompleted {
				t.Errorf("%s: got %+v, want completed", run.ID, out)
			}
			want = append(want, 42+i)
		}
		if diff := cmp.Diff(want, c.writes); diff != "" {
			t.Errorf("what was written (-want +got):\n%s", diff)
		}
	})
}

// The runs of retention.yaml say what is kept of them, where tools see it.
func TestNightly(t *testing.T) { // A0-15, A0-17
	site := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"lines": 7}`)
	})
	live(t, nil, []string{"retention"}, nil, site, func(t *testing.T, h *house) {
		h.completes(h.start("nightly", "n-1", nil), "7")
		if text := h.said("n-1"); !strings.Contains(text, "max(1d, 5)") {
			t.Errorf("the history does not say how long it is kept:\n%s", text)
		}
	})
}

// said is a history with all that its events say.
func (h *house) said(id string) string {
	h.t.Helper()
	var all strings.Builder
	for _, e := range h.History(id) {
		text, err := json.Marshal(e.Attributes)
		if err != nil {
			h.t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s %s\n", e.Type(), text)
	}
	return all.String()
}

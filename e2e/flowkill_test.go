package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/activity/kinds"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/schemas"
)

const (
	counterType = "counter"
	counterFile = "../examples/flows/counter.yaml"
	counterList = "counter"
)

// The places between the steps of the flow, and within those that ask somebody. The decider stops at those where it is about to
// decide, the web server at the others.
const (
	atBegun   = "begun"   // nothing is decided yet
	atLocked  = "locked"  // the lock is held
	atReading = "reading" // the web server is asked for the count
	atRead    = "read"    // the flow is about to compute, and to mark the replay point
	atWriting = "writing" // the web server has the new count and does not know it yet
	atWritten = "written" // it knows it, and has not answered
	atCounted = "counted" // the last decision
)

// A0-4, A0-12, A0-13: server, decider or worker is killed with -9 at each boundary of a step of a flow that counts, while another run
// waits for its lock. Both complete without an operator, the count is exact, and nobody got in between.
func TestCounterIsExactWhoeverIsKilled(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"server", "decider", "worker"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := &counts{n: 41}
			site := httptest.NewServer(s)
			t.Cleanup(site.Close)
			begin := map[string]func() *process{
				"server":  func() *process { return w.embedded("--profile", "dev", "--claim-ttl", "2s") },
				"decider": func() *process { return w.flowDecider(s) },
				"worker":  func() *process { return w.role("flow-worker", counterList) },
			}
			fleet := map[string]*process{}
			for _, name := range []string{"server", "decider", "worker"} {
				fleet[name] = begin[name]()
			}
			for i, place := range []string{atBegun, atLocked, atReading, atRead, atWriting, atWritten, atCounted} {
				trap := s.arm(place, victim == "worker" && slices.Contains([]string{atReading, atWriting, atWritten}, place))
				o := startOptions{DecisionTimeout: 2 * time.Second}
				first := w.start(counterType, fmt.Sprintf("%d-first", i), map[string]string{"url": site.URL}, o)
				trap.sprung(t)
				next := w.start(counterType, fmt.Sprintf("%d-next", i), map[string]string{"url": site.URL}, o)
				began := time.Now()
				fleet[victim].Kill()
				close(trap.open)
				fleet[victim] = begin[victim]()
				got := []string{string(w.ends(first).Result), string(w.ends(next).Result)}
				if place == atBegun { // without the lock: the other may be first
					slices.Sort(got)
				}
				if diff := cmp.Diff([]string{fmt.Sprint(trap.want), fmt.Sprint(trap.want + 1)}, got); diff != "" {
					t.Fatalf("results (-want +got):\n%s", diff)
				}
				t.Logf("kill -9 of the %s where the first is %s: both have counted %v later", victim, place, time.Since(began).Round(time.Millisecond))
				s.wrote(t, trap.want, trap.want+1)
			}
			w.verify()
		})
	}
}

// counts is a web server that keeps a number, and stops where its trap is.
type counts struct {
	mu     sync.Mutex
	n      int
	writes []int
	trap   *trap
}

// trap stops one who comes to a place, until it is open.
type trap struct {
	place string
	want  int // the number that is written next
	once  sync.Once
	hit   chan struct{}
	open  chan struct{}
	dies  bool // who is stopped by it dies there: what it asked the web server is not done
}

func (s *counts) arm(place string, dies bool) *trap {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trap = &trap{place: place, want: s.n + 1, hit: make(chan struct{}), open: make(chan struct{}), dies: dies}
	s.writes = nil
	return s.trap
}

func (t *trap) sprung(tt *testing.T) {
	tt.Helper()
	select {
	case <-t.hit:
	case <-time.After(patience):
		tt.Fatalf("nobody has come to %q for %v", t.place, patience)
	}
}

// pass stops whoever comes first to the place of the trap. It reports whether that one lives on.
func (s *counts) pass(ctx context.Context, place string) (lives bool) {
	s.mu.Lock()
	t := s.trap
	s.mu.Unlock()
	if t == nil || t.place != place {
		return true
	}
	first := false
	t.once.Do(func() { first = true; close(t.hit) })
	if !first {
		return true
	}
	open := t.open
	if t.dies {
		open = nil
	}
	select {
	case <-open:
		return true
	case <-ctx.Done():
		return false
	}
}

// wrote compares what was written since the trap was armed. Who does not know whether it has written does so again.
func (s *counts) wrote(t *testing.T, want ...int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(want, slices.Compact(slices.Clone(s.writes))); diff != "" {
		t.Errorf("the count was written as %v (-want +got):\n%s", s.writes, diff)
	}
}

func (s *counts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && !s.pass(r.Context(), atReading) {
		return
	}
	var written int
	if r.Method == http.MethodPut {
		if err := json.NewDecoder(r.Body).Decode(&written); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if !s.pass(r.Context(), atWriting) {
			return
		}
		s.mu.Lock()
		s.n = written
		s.writes = append(s.writes, written)
		s.mu.Unlock()
		s.pass(r.Context(), atWritten)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, s.n)
}

// flowDecider starts a decider for the flow, which asks the trap before each decision.
func (w *world) flowDecider(s *counts) *process {
	p := w.role("flow-decider", counterType)
	if line := p.Line(patience); line != "ready" {
		w.t.Fatalf("flow-decider: got %q, want ready", line)
	}
	go func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for place := range p.Lines { // until it is gone
			go func() {
				if s.pass(ctx, place) {
					_, _ = fmt.Fprintln(p.stdin, place) // it may be dead
				}
			}()
		}
	}()
	return p
}

// fileStore is a store of one flow, in a file.
type fileStore struct{ flow *model.Definition }

func (s fileStore) Definition(context.Context, string, string, string) (*model.Definition, string, error) {
	return s.flow, s.flow.Version(), nil
}

// flowDeciderRole decides over the flow. Before each decision of a first run it says where that is, and waits for a line.
func flowDeciderRole(ctx context.Context) error {
	text, err := os.ReadFile(counterFile)
	if err != nil {
		return err
	}
	d, err := flow.Parse(counterFile, text, nil)
	if err != nil {
		return err
	}
	c, err := connectRole(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var asking sync.Mutex
	goes := bufio.NewScanner(os.Stdin)
	flows := flow.New(fileStore{d}, &flow.Options{List: counterList})
	w := c.Deciders(nil)
	w.Register(counterType, decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		if strings.HasSuffix(t.Execution().WorkflowID, "-first") {
			place, err := placeOf(ctx, t)
			if err != nil {
				return nil, err
			}
			asking.Lock()
			defer asking.Unlock()
			fmt.Println(place)
			if !goes.Scan() {
				return nil, errors.New("nobody says go")
			}
		}
		return flows.Decide(ctx, t)
	}))
	fmt.Println("ready")
	return w.Run(ctx)
}

// placeOf tells where a run is about to decide.
func placeOf(ctx context.Context, t *decider.Task) (place string, err error) {
	asked := map[int64]string{}
	for e, err := range t.History(ctx) {
		if err != nil {
			return "", err
		}
		switch a := e.Attributes.(type) {
		case *schemas.WorkflowStarted:
			place = atBegun
		case *schemas.LockAcquired:
			place = atLocked
		case *schemas.ActivityScheduled:
			asked[e.ID] = a.ActivityID
		case *schemas.ActivitySuccess:
			if place = atCounted; strings.HasPrefix(asked[a.ScheduledEventID], "0#") {
				place = atRead
			}
		}
	}
	return place, nil
}

func flowWorkerRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	w := c.Activities(&activity.Options{Lists: []string{os.Getenv(envName)}})
	activity.Register(w, kinds.TypeHTTP, kinds.HTTP(nil))
	return w.Run(ctx)
}

package flow_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/schemas"
	"github.com/google/go-cmp/cmp"
)

// shop is a world whose activities fail as long as they are told to, and are counted.
type shop struct {
	mu    sync.Mutex
	fail  map[string]bool
	calls map[string]int
	seen  map[string]any // the input of the latest call
}

func newShop(failing ...string) *shop {
	s := &shop{fail: map[string]bool{}, calls: map[string]int{}, seen: map[string]any{}}
	for _, name := range failing {
		s.fail[name] = true
	}
	return s
}

func (s *shop) work(name string) func(context.Context, map[string]any) (any, error) {
	return func(_ context.Context, in map[string]any) (any, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls[name]++
		s.seen[name] = in["n"]
		if s.fail[name] {
			return nil, errors.New(name + " is broken")
		}
		return in["n"], nil
	}
}

func (s *shop) all(names ...string) map[string]func(context.Context, map[string]any) (any, error) {
	all := map[string]func(context.Context, map[string]any) (any, error){}
	for _, name := range names {
		all[name] = s.work(name)
	}
	return all
}

func (s *shop) mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.fail)
}

func (s *shop) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	maps.Copy(counts, s.calls)
	return counts
}

// fails waits for a run that must not complete.
func fails(t *testing.T, e *drovertest.Env, run *drover.Run) {
	t.Helper()
	if out := e.Wait(run); out.Status == schemas.StatusCompleted {
		t.Fatalf("run %s has completed, want a failure", run.RunID)
	}
}

func replayed(t *testing.T, run *drover.Run, o drover.ReplayOptions) *drover.Replayed {
	t.Helper()
	a, err := run.Replay(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

const trade = `
steps:
- let n = 1
- {id: pay, step: "activity pay with n = ${n}", replayable: from here}
- let n = 2
- {id: ship, step: "activity ship with n = ${n}"%s}
- return "shipped ${n}"
`

// A0-18, A0-8, A0-9: from where a replay goes on, with which variables, and what it runs again.
func TestA018ReplayOnTheBroker(t *testing.T) {
	for _, tc := range []struct {
		name, keys string
		o          drover.ReplayOptions
		plan       schemas.ReplayPlan
		calls      map[string]int
		refused    string
	}{
		{
			name: "A0-8: end, in an idempotent step", keys: ", idempotent: yes",
			plan:  schemas.ReplayPlan{From: "3", Resumes: true, Again: []schemas.ReplayStep{{Ref: "3", Name: "ship", Type: "activity"}}},
			calls: map[string]int{"pay": 1, "ship": 2},
		},
		{
			name: "A0-9: end, in a step that may not run twice", o: drover.ReplayOptions{From: "end"},
			plan: schemas.ReplayPlan{From: "1", Again: []schemas.ReplayStep{
				{Ref: "1", Name: "pay", Type: "activity", NotIdempotent: true}, {Ref: "2", Type: "let"}, {Ref: "3", Name: "ship", Type: "activity", NotIdempotent: true},
			}},
			calls: map[string]int{"pay": 2, "ship": 2},
		},
		{
			name: "last", keys: ", idempotent: yes", o: drover.ReplayOptions{From: "Last"},
			plan: schemas.ReplayPlan{From: "1", Again: []schemas.ReplayStep{
				{Ref: "1", Name: "pay", Type: "activity", NotIdempotent: true}, {Ref: "2", Type: "let"}, {Ref: "3", Name: "ship", Type: "activity"},
			}},
			calls: map[string]int{"pay": 2, "ship": 2},
		},
		{name: "start is no point", o: drover.ReplayOptions{From: "start"}, refused: "no replay point at start: say replayable: from start"},
		{
			name: "start by force", o: drover.ReplayOptions{From: "start", Force: true},
			plan: schemas.ReplayPlan{From: "start", Again: []schemas.ReplayStep{
				{Ref: "0", Type: "let"},
				{Ref: "1", Name: "pay", Type: "activity", NotIdempotent: true},
				{Ref: "2", Type: "let"},
				{Ref: "3", Name: "ship", Type: "activity", NotIdempotent: true},
			}},
			calls: map[string]int{"pay": 2, "ship": 2},
		},
		{
			name: "a step by force", o: drover.ReplayOptions{From: "ship", Force: true},
			plan:  schemas.ReplayPlan{From: "3", Again: []schemas.ReplayStep{{Ref: "3", Name: "ship", Type: "activity", NotIdempotent: true}}},
			calls: map[string]int{"pay": 1, "ship": 2},
		},
		{name: "no such step", o: drover.ReplayOptions{From: "fly"}, refused: `no step "fly"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sample.OneOfEight(t)
			drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
				s := newShop("ship")
				farm(t, e, map[string]string{"trade": fmt.Sprintf(trade, tc.keys)}, s.all("pay", "ship"))
				old := start(t, e, "trade", "t-1", nil)
				fails(t, e, old)
				s.mend()
				dry := tc.o
				dry.DryRun = true
				before := s.counts()
				plan, err := e.Client.Run("t-1", "").Replay(t.Context(), &dry)
				if tc.refused != "" {
					if !errors.Is(err, drover.ErrConflict) || !strings.Contains(err.Error(), tc.refused) {
						t.Errorf("dry run: got %v, want a conflict about %q", err, tc.refused)
					}
					_, err = e.Client.Run("t-1", "").Replay(t.Context(), &tc.o)
					if !errors.Is(err, drover.ErrConflict) || !strings.Contains(err.Error(), tc.refused) {
						t.Errorf("got %v, want a conflict about %q", err, tc.refused)
					}
					if d, err := e.Client.Run("t-1", "").Describe(t.Context()); err != nil || d.Execution.Run != old.RunID {
						t.Errorf("a refused replay has left run %v (%v), want %s to be the latest", d, err, old.RunID)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(&tc.plan, plan.Plan); diff != "" || plan.Run != nil || plan.Replays != old.RunID {
					t.Errorf("dry run: run %v, replays %s (-want +got):\n%s", plan.Run, plan.Replays, diff)
				}
				e.Sleep(time.Minute)
				if diff := cmp.Diff(before, s.counts()); diff != "" {
					t.Errorf("the dry run has run something (-before +after):\n%s", diff)
				}
				a := replayed(t, e.Client.Run("t-1", ""), tc.o)
				var got string
				e.Result(e.Client.Run("t-1", ""), &got)
				if got != "shipped 2" || !a.Run.Started() || a.Run.RunID == old.RunID {
					t.Errorf("got %q by run %s, started %v", got, a.Run.RunID, a.Run.Started())
				}
				if diff := cmp.Diff(tc.calls, s.counts()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				if out := e.Wait(old); out.Status != schemas.StatusFailed {
					t.Errorf("the old run is %s, want failed as it was", out.Status)
				}
			})
		})
	}
}

// A0-18: both ends of the link, exactly once.
func TestReplaysAreLinkedAndHappenOnce(t *testing.T) {
	sample.OneOfEight(t)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		s := newShop("ship")
		farm(t, e, map[string]string{"trade": fmt.Sprintf(trade, ", idempotent: yes")}, s.all("pay", "ship"))
		first := start(t, e, "trade", "t-1", nil)
		fails(t, e, first)
		o := drover.ReplayOptions{Reason: "the shop was shut", RequestID: "r-1"}
		second := replayed(t, first, o).Run
		fails(t, e, second)
		s.mend()
		if again := replayed(t, e.Client.Run("t-1", ""), o).Run; again.RunID != second.RunID || again.Started() {
			t.Errorf("a repeat has begun run %s (%v), want %s again", again.RunID, again.Started(), second.RunID)
		}
		third := replayed(t, e.Client.Run("t-1", ""), drover.ReplayOptions{From: "ship", Force: true}).Run
		var got string
		e.Result(third, &got)
		if again := replayed(t, first, o).Run; again.RunID != second.RunID { // it is not the latest any more
			t.Errorf("a late repeat has begun run %s, want %s again", again.RunID, second.RunID)
		}
		fresh := start(t, e, "trade", "t-1", nil)
		e.Result(fresh, &got)

		want := []schemas.ReplayAttempt{
			{Run: first.RunID, Status: schemas.StatusFailed},
			{Run: second.RunID, Status: schemas.StatusFailed, Replays: &schemas.ReplayOf{Run: first.RunID, From: "end", Reason: "the shop was shut"}},
			{Run: third.RunID, Status: schemas.StatusCompleted, Replays: &schemas.ReplayOf{Run: second.RunID, From: "ship", Force: true}},
		}
		for _, run := range []*drover.Run{first, second, third} {
			d, err := e.Client.Run("t-1", run.RunID).Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range d.Attempts {
				a := &d.Attempts[i]
				if a.StartedAt == 0 || a.ClosedAt < a.StartedAt {
					t.Errorf("attempt %s began at %v and ended at %v", a.Run, a.StartedAt, a.ClosedAt)
				}
				if a.StartedAt, a.ClosedAt = 0, 0; a.Replays != nil {
					a.Replays.Identity = ""
				}
			}
			if diff := cmp.Diff(want, d.Attempts); diff != "" {
				t.Errorf("attempts told by run %s (-want +got):\n%s", run.RunID, diff)
			}
		}
		d, err := e.Client.Run("t-1", "").Describe(t.Context())
		if err != nil || len(d.Attempts) != 0 || d.Execution.Run != fresh.RunID {
			t.Errorf("run %s was begun anew and has the attempts %v (%v)", d.Execution.Run, d.Attempts, err)
		}
		why, err := first.Why(t.Context())
		if err != nil || !strings.Contains(why, "replayed from end as run "+second.RunID) || !strings.Contains(why, "the shop was shut") {
			t.Errorf("why: got %q (%v), want the run that replays it, and the reason", why, err)
		}
		var started *schemas.WorkflowStarted
		for ev, err := range second.History(t.Context(), drover.HistoryOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			started, _ = ev.Attributes.(*schemas.WorkflowStarted)
			break
		}
		if started == nil || started.Replays == nil || started.Replays.Run != first.RunID || started.Replays.Reason != "the shop was shut" || started.Replays.Identity == "" {
			t.Errorf("the first event of the replay is %+v", started)
		}
	})
}

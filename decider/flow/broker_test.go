package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/schemas"
	"github.com/google/go-cmp/cmp"
)

// shelf is a store in memory.
type shelf struct {
	mu     sync.Mutex
	t      *testing.T
	latest map[string]string
	all    map[string]*model.Definition
}

func (s *shelf) deploy(name, text string) {
	s.t.Helper()
	d, err := flow.Parse(name, []byte(text), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all, s.latest = map[string]*model.Definition{}, map[string]string{}
	}
	s.latest[name] = d.Version()
	s.all[name+"@"+d.Version()] = d
}

func (s *shelf) Definition(_ context.Context, _, name, version string) (*model.Definition, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version == "" {
		version = s.latest[name]
	}
	d := s.all[name+"@"+version]
	if d == nil {
		return nil, "", fmt.Errorf("%w: %s", flow.ErrNoDefinition, name)
	}
	return d, version, nil
}

// farm runs flows and activities of the list "main" against the real broker in virtual time.
func farm(t *testing.T, e *drovertest.Env, flows map[string]string, activities map[string]func(context.Context, map[string]any) (any, error)) *shelf {
	t.Helper()
	s := &shelf{t: t}
	w := e.Client.Deciders(nil)
	d := flow.New(s, &flow.Options{List: "main", Random: func() float64 { return 0.5 }})
	for name, text := range flows {
		s.deploy(name, text)
		w.Register(name, d)
	}
	e.Go(w)
	a := e.Client.Activities(&activity.Options{Lists: []string{"main"}})
	for name, f := range activities {
		activity.Register(a, name, f)
	}
	if len(activities) > 0 {
		e.Go(a)
	}
	return s
}

func start(t *testing.T, e *drovertest.Env, typ, id string, input any) *drover.Run {
	t.Helper()
	run, err := e.Client.Start(t.Context(), typ, input, &drover.StartOptions{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestOnTheBroker(t *testing.T) {
	sample.OneOfEight(t)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		var mu sync.Mutex
		tries := 0
		s := farm(t, e, map[string]string{
			"order": `
parameters:
  amount: {type: integer, required: true}
steps:
- let total = ${amount} * 2
- step: activity charge with amount = ${total}
  idempotent: yes
  on-error: retry limit 5 backoff 1h increasing 2x
- let receipt = ${receipt}
- sleep 3 days
- foreach n in 1..3 do return ${n}
- let all = ${output}
- {type: workflow, timeout: 1 day, input: {r: "${receipt}"}, steps: [wait for signal go, 'return "${r} ${v}"']}
- let part = ${output}
- step: approve the order
  timeout: 1 day
  on-error: {step: no-op, output: "${workflow.error.type}"}
output: {receipt: "${receipt}", all: "${all}", part: "${part}", approved: "${output}"}
`,
		}, map[string]func(context.Context, map[string]any) (any, error){
			"charge": func(_ context.Context, in map[string]any) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				if tries++; tries < 3 {
					return nil, errors.New("declined")
				}
				return map[string]any{"receipt": fmt.Sprintf("r-%v", in["amount"])}, nil
			},
		})
		begin := time.Now()
		run := start(t, e, "order", "o-1", map[string]any{"amount": 21})
		e.Await("o-1", schemas.EventActivityScheduled) // it has begun
		s.deploy("order", "steps: [fail message the run keeps the version that it began with]")
		for { // the part that waits for a signal is a child with an id of its own
			e.Sleep(12 * time.Hour)
			if child := lastChild(e, "o-1", 4); child != "" {
				if err := e.Client.Run(child, "").Signal(t.Context(), "go", map[string]any{"v": "signaled"}); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
		var got map[string]any
		e.Result(run, &got)
		want := map[string]any{"receipt": "r-42", "all": []any{1.0, 2.0, 3.0}, "part": "r-42 signaled", "approved": "timeout"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		if took := time.Since(begin); took < 4*24*time.Hour || took > 6*24*time.Hour {
			t.Errorf("the run took %v, want 4 days and some hours", took)
		}
	})
}

// lastChild is the workflow id of the n-th child that a run has asked for.
func lastChild(e *drovertest.Env, id string, n int) string {
	for _, ev := range e.History(id) {
		if a, ok := ev.Attributes.(*schemas.ChildScheduled); ok {
			if n--; n == 0 {
				return a.WorkflowID
			}
		}
	}
	return ""
}

func TestFailuresAndReplay(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		var mu sync.Mutex
		broken, calls := true, map[string]int{}
		farm(t, e, map[string]string{
			"trip": `
steps:
- activity book with what = flight
- type: foreach
  target: [a, b]
  target_var_name: room
  concurrency: 2
  steps:
  - activity book with what = ${room}
  - step: activity pay with what = ${room}
    idempotent: yes
- log booked
- return ${output}
`,
		}, map[string]func(context.Context, map[string]any) (any, error){
			"book": func(_ context.Context, in map[string]any) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				calls[fmt.Sprint("book ", in["what"])]++
				return in["what"], nil
			},
			"pay": func(_ context.Context, in map[string]any) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				calls[fmt.Sprint("pay ", in["what"])]++
				if broken && in["what"] == "b" {
					return nil, errors.New("no money")
				}
				return fmt.Sprint("paid ", in["what"]), nil
			},
		})
		run := start(t, e, "trip", "t-1", nil)
		out := e.Wait(run)
		if out.Status == schemas.StatusCompleted {
			t.Fatalf("the run has completed, want a failure: %+v", out)
		}
		mu.Lock()
		broken = false
		mu.Unlock()
		again := replayed(t, run, drover.ReplayOptions{}).Run
		var got []any
		e.Result(again, &got)
		if diff := cmp.Diff([]any{"paid a", "paid b"}, got); diff != "" {
			t.Errorf("result of the replay (-want +got):\n%s", diff)
		}
		want := map[string]int{"book flight": 1, "book a": 1, "book b": 1, "pay a": 1, "pay b": 2}
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("calls: what is done is not done again (-want +got):\n%s", diff)
		}
	})
}

func TestCancelReachesChildren(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		farm(t, e, map[string]string{"outer": "steps:\n- {type: workflow, steps: [sleep 30 days]}\non-error: [log never]\n"}, nil)
		run := start(t, e, "outer", "o-1", nil)
		e.Sleep(time.Hour)
		if err := run.Cancel(t.Context(), "no need"); err != nil {
			t.Fatal(err)
		}
		if out := e.Wait(run); out.Status != schemas.StatusCanceled {
			t.Errorf("the run is %v, want canceled", out.Status)
		}
		child := e.Client.Run(lastChild(e, "o-1", 1), "")
		if out := e.Wait(child); out.Status != schemas.StatusCanceled {
			t.Errorf("the child is %v, want canceled", out.Status)
		}
		if text := e.History("o-1").String(); strings.Contains(text, "Marker") {
			t.Errorf("a handler has run:\n%s", text)
		}
	})
}

func TestWrongInputFailsTheRun(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		farm(t, e, map[string]string{"order": "parameters: {n: {type: integer, required: true}}\nsteps: [log never]\n"}, nil)
		for i, tc := range []struct {
			input any
			want  string
		}{
			{nil, "required"},
			{"text", "give a map"},
			{map[string]any{"n": "x"}, "no integer"},
			{json.RawMessage(`{"$flow": {"part": "7"}}`), "required"}, // nothing but data: no run of a flow has sent it
			{json.RawMessage(`{"$flow": {"replay": {"state": {"drover_run": 9}, "from": "end"}}}`), "required"},
			{json.RawMessage(`{"$flow": 5}`), "required"},
		} {
			out := e.Wait(start(t, e, "order", fmt.Sprint("o-", i), tc.input))
			if out.Status != schemas.StatusFailed || !strings.Contains(string(out.Details), tc.want) {
				t.Errorf("input %v: got %v with %s, want a failure about %q", tc.input, out.Status, out.Details, tc.want)
			}
		}
	})
}

// A0-12: neither a crash of the server nor that of a worker interrupts a flow that waits: its state is in the history. An activity whose
// worker is lost and that may not run twice is closed as interrupted, and the flow resumes by itself from its replay point.
func TestA012Crashes(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		var mu sync.Mutex
		calls := 0
		farm(t, e, map[string]string{"long": `
replayable: automatically
steps:
- sleep 10h
- {step: let n = 1, replayable: from here}
- activity once with n = ${n}
- sleep 10h
- return ${output}
`}, map[string]func(context.Context, map[string]any) (any, error){
			"once": func(ctx context.Context, in map[string]any) (any, error) {
				mu.Lock()
				calls++
				first := calls == 1
				mu.Unlock()
				if first { // it hangs until its worker is gone
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return in["n"], nil
			},
		})
		run := start(t, e, "long", "l-1", nil)
		e.Sleep(5 * time.Hour)
		e.Crash(10 * time.Second)
		e.Sleep(5*time.Hour + time.Minute)
		e.Crash(10 * time.Second)
		var got float64
		e.Result(run, &got)
		mu.Lock()
		defer mu.Unlock()
		text := e.History("l-1").String()
		if got != 1 || calls != 2 || !strings.Contains(text, "ActivityFailed 2#1 interrupted") || !strings.Contains(text, "ActivityScheduled 2#2") {
			t.Errorf("got %v after %d calls, want 1 after 2, the first interrupted\n%s", got, calls, text)
		}
	})
}

// What runs under one lock runs one after the other, in the order in which it came; under another scope it does not wait. A run within
// the holder enters at once.
func TestLocksOfFlows(t *testing.T) { // A0-1, A0-2
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		var mu sync.Mutex
		var began []string
		busy, most := map[string]int{}, map[string]int{}
		work := func(ctx context.Context, in map[string]any) (any, error) {
			who, scope := fmt.Sprint(in["who"]), fmt.Sprint(in["scope"])
			mu.Lock()
			began = append(began, who)
			busy[scope]++
			most[scope] = max(most[scope], busy[scope])
			most["all"] = max(most["all"], busy["shared"]+busy["own"])
			mu.Unlock()
			defer func() { mu.Lock(); busy[scope]--; mu.Unlock() }()
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
			return "done", nil
		}
		steps := "steps:\n- activity work with who = ${workflow.id}, scope = "
		farm(t, e, map[string]string{
			"begin": "lock: start-stop\n" + steps + "shared\n",
			"end":   "lock: start-stop\n" + steps + "shared\n",
			"aside": "lock: {name: start-stop, scope: own}\n" + steps + "own\n",
			"outer": "lock: start-stop\nsteps:\n- {type: workflow, lock: start-stop, steps: [return inner]}\n- return outer ${output}\n",
		}, map[string]func(context.Context, map[string]any) (any, error){"work": work})
		var want []string
		for i, typ := range []string{"begin", "end", "begin"} {
			start(t, e, typ, fmt.Sprint("run-", i), nil)
			e.Sleep(time.Second)
			want = append(want, fmt.Sprint("run-", i))
		}
		start(t, e, "aside", "run-3", nil)
		if why, err := e.Client.Run("run-1", "").Why(t.Context()); err != nil || !strings.Contains(why, "start-stop") || !strings.Contains(why, "run-0") { // A0-3
			t.Errorf("why: got %q (%v), want the lock and its holder", why, err)
		}
		for i := range 4 {
			if out := e.Wait(e.Client.Run(fmt.Sprint("run-", i), "")); out.Status != schemas.StatusCompleted {
				t.Errorf("run-%d: got %v with %s", i, out.Status, out.Details)
			}
		}
		if out := e.Wait(start(t, e, "outer", "run-4", nil)); out.Status != schemas.StatusCompleted || string(out.Result) != `"outer inner"` {
			t.Errorf("within the holder: got %v with %s %s", out.Status, out.Result, out.Details)
		}
		mu.Lock()
		defer mu.Unlock()
		order := slices.DeleteFunc(slices.Clone(began), func(id string) bool { return id == "run-3" })
		if d := cmp.Diff(want, order); d != "" || most["shared"] != 1 || most["all"] != 2 {
			t.Errorf("at most %v at once, and in the order (-want +got):\n%s", most, d)
		}
	})
}

// A run goes on when its type is deprecated, with the parts of it that are runs of their own.
func TestPartsOfARunOfADeprecatedType(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		farm(t, e, map[string]string{"work": "steps: [sleep 1m, {step: 'foreach n in 1..2', do: 'return ${n}'}]"}, nil)
		if _, err := e.Client.RegisterType(t.Context(), schemas.WorkflowKind, "work", nil); err != nil {
			t.Fatal(err)
		}
		run := start(t, e, "work", "w-1", nil)
		if _, err := e.Client.DeprecateType(t.Context(), schemas.WorkflowKind, "work", ""); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Client.Start(t.Context(), "work", nil, nil); !errors.Is(err, drover.ErrDeprecated) {
			t.Errorf("a new run: got %v, want a refusal", err)
		}
		if out := e.Wait(run); string(out.Result) != "[1,2]" {
			t.Errorf("got %v with %s %s", out.Status, out.Result, out.Details)
		}
	})
}

// A0-5: what is done under a lock is never done beside another that has it, however its run ends, and whatever the worker thinks of that.
func TestStubbornWorkKeepsTheLock(t *testing.T) {
	for name, text := range map[string]string{
		"by its key":     "steps: [{step: 'set-state lock-l = ${workflow.id}', require: {when: absent}, on-error: [retry backoff 1s]}, {step: activity stubborn, timeout: 10s}]",
		"timeout":        "lock: l\nsteps: [{step: activity stubborn, timeout: 10s}]",
		"within":         "lock: l\nsteps: [{type: workflow, steps: [activity stubborn]}]",
		"timeout within": "lock: l\nsteps: [{type: workflow, timeout: 10s, steps: [activity stubborn]}]",
	} {
		t.Run(name, func(t *testing.T) {
			drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
				var busy, met atomic.Int32
				farm(t, e, map[string]string{"work": text}, map[string]func(context.Context, map[string]any) (any, error){
					"stubborn": func(context.Context, map[string]any) (any, error) {
						if busy.Add(1) > 1 {
							met.Add(1)
						}
						time.Sleep(time.Minute)
						busy.Add(-1)
						return "done", nil
					},
				})
				first := start(t, e, "work", "first", nil)
				e.Sleep(time.Second)
				second := start(t, e, "work", "second", nil)
				e.Sleep(10 * time.Second)
				if name == "within" {
					if err := first.Cancel(t.Context(), "it takes too long"); err != nil {
						t.Fatal(err)
					}
				}
				e.Wait(first)
				e.Wait(second)
				if met.Load() > 0 {
					t.Error("both have worked at one time")
				}
			})
		})
	}
}

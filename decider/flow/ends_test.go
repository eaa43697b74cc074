package flow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/sample"
)

// Each flow has to end with the wanted text in what it leaves.
func TestRunsEnd(t *testing.T) {
	sample.OneOfEight(t)
	cases := map[string]struct {
		flow string
		in   any
		want string
	}{
		"log":     {"steps: ['log ${x}', return done]", map[string]any{"x": strings.Repeat("€", 6000)}, "done"},
		"input":   {"steps: [return done]", map[string]any{"$flow": 5}, "done"},
		"part":    {"parameters: {ok: {required: true}}\nlock: a\nsteps: [{type: workflow, steps: [return secret]}]", map[string]any{"$flow": map[string]any{"part": "0"}}, "required"},
		"block":   {"steps:\n- {type: subworkflow, timeout: 10m, steps: [{step: activity flaky, idempotent: yes}, wait for signal never], on-error: [{step: retry limit 1, condition: {regex: '.*boom.*'}}, return timed out]}\n", nil, "timed out"},
		"handler": {"steps:\n- {type: subworkflow, timeout: 10m, steps: [fail message first]}\non-error:\n- {step: wait for signal never, timeout: 5m, on-error: [no-op]}\n- return ${workflow.error.message}\n", nil, "first"},
		"timeout": {"timeout: 2h\nsteps: [log hi, return done]", nil, "done"},
		"limited": {"steps: [{step: log hi, timeout: 1h}, {step: return done, timeout: 1h}]", nil, "done"},
		"within":  {"steps: [{type: workflow, timeout: 1h, steps: [return done]}]", nil, "done"},
		"in time": {"steps: [{type: workflow, timeout: 1m, steps: [sleep 1h]}]\non-error: [{step: return done, condition: {error-cause: {java-instance-of: TimeoutException}}}]", nil, "done"},
		"each":    {"steps: [{step: foreach n in 1..3, concurrency: all, timeout: 1m, do: sleep 1h}]\non-error: [{step: return done, condition: {error-cause: {glob: '*timeout*'}}}]", nil, "done"},
		"locked":  {"lock: b\ntimeout: 2h\nsteps: [fail message done]", nil, "done"},
		"wide":    {"steps:\n- {step: 'foreach n in 1..30', concurrency: all, input: {x: '${x}'}, steps: [sleep 1m]}\n- return done\n", map[string]any{"x": strings.Repeat("x", 40_000)}, "done"},
		"lines":   {"steps:\n- let n = 0\n- {id: again, step: 'let n = ${n} + 1'}\n- log ${x}\n- {step: goto again, condition: {target: '${n}', less-than: 100}}\n- return done\n", map[string]any{"x": strings.Repeat("x", 16_000)}, "done"},
		"all":     {"steps:\n- {step: 'foreach n in 1..1010', concurrency: all, steps: [sleep 1m]}\n- return done\n", nil, "done"},
	}
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		flows := map[string]string{}
		for name, h := range cases {
			flows[name] = h.flow
		}
		tries := 0
		farm(t, e, flows, map[string]func(context.Context, map[string]any) (any, error){"flaky": func(context.Context, map[string]any) (any, error) {
			if tries++; tries == 1 {
				return nil, errors.New("boom")
			}
			return 1, nil
		}})
		runs := map[string]*drover.Run{}
		for name, h := range cases {
			run, err := e.Client.Start(t.Context(), name, h.in, &drover.StartOptions{ID: name})
			if err != nil {
				t.Fatal(err)
			}
			runs[name] = run
		}
		time.Sleep(20 * time.Minute) // longer than all of them need; Sleep would look at a thousand runs each time it leaps
		var failures []string
		for name, h := range cases {
			run := runs[name]
			d, err := run.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !d.Execution.Status.Closed() {
				why, _ := run.Why(t.Context())
				failures = append(failures, fmt.Sprintf("%s: still %s: %s", name, d.Execution.Status, why))
				continue
			}
			out := e.Wait(run)
			if text := fmt.Sprint(out.Reason, " ", string(out.Details), " ", string(out.Result)); !strings.Contains(text, h.want) {
				failures = append(failures, fmt.Sprintf("%s: got %s %s, want %q", name, out.Status, text[:min(len(text), 300)], h.want))
			}
		}
		for _, f := range failures {
			t.Error(f)
		}
	})
}

// A run that has taken a lock by its state key keeps its history, and one that does not keep it takes none: the step fails, and not the run's
// decider for ever.
func TestRetentionBesideALockByItsKey(t *testing.T) {
	cases := map[string]struct{ flow, want string }{
		"kept":   {"steps: ['set-state lock-kept = ${workflow.id}', workflow retention disabled, return no]\non-error: ['return done ${workflow.error.message}']", "done a run that has a lock cannot"},
		"unkept": {"steps: [workflow retention disabled, 'set-state lock-unkept = ${workflow.id}', return no]\non-error: ['return done ${workflow.error.message}']", "done the retention of the run is disabled"},
		"gone":   {"retention: disabled\nsteps: ['set-state lock-gone = ${workflow.id}']\non-error: ['workflow retention 3', 'set-state lock-gone = ${workflow.id}', return done]", "done"},
		"let go": {"steps: ['set-state lock-free = ${workflow.id}', clear-state lock-free, 'workflow retention disabled', sleep 1s, workflow retention 3, return done]", "done"},
	}
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		flows := map[string]string{}
		for name, c := range cases {
			flows[name] = c.flow
		}
		farm(t, e, flows, nil)
		for name, c := range cases {
			start(t, e, name, name, nil)
			e.Sleep(5 * time.Second)
			d, err := e.Client.Run(name, "").Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !d.Execution.Status.Closed() {
				why, _ := e.Client.Run(name, "").Why(t.Context())
				t.Errorf("%s: still %s: %s", name, d.Execution.Status, why)
				continue
			}
			if out := e.Wait(e.Client.Run(name, "")); !strings.Contains(string(out.Result), c.want) {
				t.Errorf("%s: got %s %s %s, want %q", name, out.Status, out.Details, out.Result, c.want)
			}
		}
	})
}

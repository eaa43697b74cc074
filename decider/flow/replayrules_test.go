package flow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// A0-11: replayable: disabled hides replay from operators and automation, not from a retry inside; force overrides.
func TestA011DisabledOnTheBroker(t *testing.T) {
	sample.OneOfEight(t)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		s := newShop("ship")
		farm(t, e, map[string]string{"trade": `
replayable: disabled
steps:
- {id: pay, step: activity pay, replayable: from here}
- {id: ship, step: activity ship, idempotent: yes, on-error: retry limit 1}
- return done
`}, s.all("pay", "ship"))
		run := start(t, e, "trade", "t-1", nil)
		fails(t, e, run)
		if diff := cmp.Diff(map[string]int{"pay": 1, "ship": 2}, s.counts()); diff != "" {
			t.Errorf("the retry has not run (-want +got):\n%s", diff)
		}
		for _, from := range []string{"start", "last", "end", "pay"} {
			if _, err := run.Replay(t.Context(), &drover.ReplayOptions{From: from}); !errors.Is(err, drover.ErrConflict) || !strings.Contains(err.Error(), "replayable: disabled") || !strings.Contains(err.Error(), "say --force") {
				t.Errorf("from %s: got %v, want a refusal that names replayable: disabled", from, err)
			}
		}
		s.mend()
		var got string
		e.Result(replayed(t, run, drover.ReplayOptions{Force: true}).Run, &got)
		if diff := cmp.Diff(map[string]int{"pay": 1, "ship": 3}, s.counts()); diff != "" || got != "done" {
			t.Errorf("by force: got %q (-want +got):\n%s", got, diff)
		}
	})
}

// A0-10: from here only and reset forget the points before, on the broker as in the machine.
func TestA010PointsOnTheBroker(t *testing.T) {
	sample.OneOfEight(t)
	for _, tc := range []struct{ word, from, refused string }{
		{"from here", "one", ""},
		{"from here only", "one", "no replay point"},
		{"from here only", "last", ""},
		{"reset", "last", "no replay point"},
		{"reset", "one", "no replay point"},
	} {
		drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
			s := newShop("work")
			farm(t, e, map[string]string{"trade": fmt.Sprintf(`
steps:
- {id: one, step: let n = 1, replayable: from here}
- workflow replayable %s
- activity work with n = ${n}
- return ${n}
`, tc.word)}, s.all("work"))
			run := start(t, e, "trade", "t-1", nil)
			fails(t, e, run)
			s.mend()
			a, err := run.Replay(t.Context(), &drover.ReplayOptions{From: tc.from})
			if tc.refused != "" {
				if !errors.Is(err, drover.ErrConflict) || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("%s, from %s: got %v, want %q", tc.word, tc.from, err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s, from %s: %v", tc.word, tc.from, err)
			}
			if out := e.Wait(a.Run); string(out.Result) != "1" {
				t.Errorf("%s, from %s: got %s %s", tc.word, tc.from, out.Status, out.Result)
			}
		})
	}
}

// A0-14: the counts of retries are kept over replays, and over a crash of the server between them.
func TestA014RetriesAreCountedOverReplaysAndCrashes(t *testing.T) {
	sample.OneOfEight(t)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		s := newShop("ship")
		farm(t, e, map[string]string{"trade": `
steps:
- {id: ship, step: activity ship, idempotent: yes, on-error: retry limit 3 backoff 1h}
- return done
`}, s.all("ship"))
		run := start(t, e, "trade", "t-1", nil)
		e.Sleep(90 * time.Minute)
		e.Crash(10 * time.Second)
		fails(t, e, run)
		if diff := cmp.Diff(map[string]int{"ship": 4}, s.counts()); diff != "" {
			t.Errorf("three retries over a crash (-want +got):\n%s", diff)
		}
		again := replayed(t, run, drover.ReplayOptions{}).Run
		fails(t, e, again)
		if diff := cmp.Diff(map[string]int{"ship": 5}, s.counts()); diff != "" {
			t.Errorf("the replay has retried although the limit was reached (-want +got):\n%s", diff)
		}
	})
}

// A nested workflow that runs out of its own time is resumed where it stood, by a retry of the flow around it as by a replay: what is done
// is not done again.
func TestPartsOutOfTimeAreResumed(t *testing.T) {
	sample.OneOfEight(t)
	const steps = `
- type: workflow
  timeout: 1m
  steps: [activity pay, "wait x = ${state.go}", "return ${x}"]
`
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		s := newShop()
		farm(t, e, map[string]string{
			"replayed": "steps:" + steps, "canceled": "lock: one\nsteps:" + steps, "retried": "steps:" + steps + "on-error: [retry limit 9]\n", "go": "steps: [set-state go = now]",
		}, s.all("pay"))
		first := start(t, e, "replayed", "t-1", nil)
		fails(t, e, first)
		second := start(t, e, "retried", "t-2", nil)
		third := start(t, e, "canceled", "t-3", nil)
		e.Sleep(30 * time.Second)
		if err := third.Cancel(t.Context(), "enough"); err != nil {
			t.Fatal(err)
		}
		fails(t, e, third)
		e.Sleep(time.Minute)
		e.Wait(start(t, e, "go", "g", nil))
		for _, run := range []*drover.Run{second, replayed(t, first, drover.ReplayOptions{}).Run, replayed(t, third, drover.ReplayOptions{}).Run} {
			var got string
			if e.Result(run, &got); got != "now" {
				t.Errorf("%s: got %q, want what the state key had", run.ID, got)
			}
		}
		if n := s.counts()["pay"]; n != 3 {
			t.Errorf("pay was done %d times for three runs", n)
		}
	})
}

// One that could not be resumed is begun anew if its step says that it may be.
func TestPartsOutOfTimeAreBegunAnew(t *testing.T) {
	sample.OneOfEight(t)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		s := newShop()
		work := s.all("pay")
		work["slow"] = func(ctx context.Context, _ map[string]any) (any, error) {
			if s.counts()["pay"] > 1 {
				return 5, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		farm(t, e, map[string]string{"trade": `
steps:
- {type: workflow, timeout: 1m, idempotent: yes, steps: [activity pay, activity slow]}
on-error: [retry limit 1]
`}, work)
		var got int
		if e.Result(start(t, e, "trade", "t-1", nil), &got); got != 5 || s.counts()["pay"] != 2 {
			t.Errorf("got %d, and pay was done %d times", got, s.counts()["pay"])
		}
	})
}

// A step whose runs stand where none of them may go on is none that may run again: the replay is from the last point, or refused before
// anything is written.
func TestPartsThatMayNotGoOn(t *testing.T) {
	sample.OneOfEight(t)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		s := newShop("pay")
		const steps = `
- step: foreach n in 1..1
  steps: ["activity look with n = ${n}", "activity pay with n = ${n}"]
- return ${output}
`
		farm(t, e, map[string]string{
			"pointed": "steps:\n- {step: activity begin, replayable: from here}" + steps, "pointless": "steps:" + steps,
		}, s.all("begin", "look", "pay"))
		first, second := start(t, e, "pointed", "t-1", nil), start(t, e, "pointless", "t-2", nil)
		fails(t, e, first)
		fails(t, e, second)
		s.mend()
		if _, err := second.Replay(t.Context(), nil); !errors.Is(err, drover.ErrConflict) || !strings.Contains(err.Error(), "step 0 (foreach) may not run twice") {
			t.Errorf("without a point: got %v, want a refusal that names the step", err)
		}
		if a := replayed(t, first, drover.ReplayOptions{}); a.Plan.From != "0" || a.Plan.Resumes {
			t.Errorf("the plan is %+v, want one from the point", a.Plan)
		}
		for _, run := range []*drover.Run{e.Client.Run("t-1", ""), replayed(t, second, drover.ReplayOptions{Force: true}).Run} {
			var got []int
			if e.Result(run, &got); !slices.Equal(got, []int{1}) {
				t.Errorf("%s: got %v, want what was paid", run.ID, got)
			}
		}
		if n := s.counts()["begin"]; n != 2 {
			t.Errorf("what stands at the point was done %d times, want it again", n)
		}
	})
}

// A0-7: what is interrupted and may not run twice fails with an error that handlers know by both names; what may run again goes on.
func TestA07InterruptedOnTheBroker(t *testing.T) {
	sample.OneOfEight(t)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		var mu sync.Mutex
		calls := map[string]int{}
		hang := func(ctx context.Context, in map[string]any) (any, error) {
			mu.Lock()
			who := fmt.Sprint(in["who"])
			calls[who]++
			first := calls[who] == 1
			mu.Unlock()
			if first {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			time.Sleep(time.Second) // a quick type would be offered, and the worker, which outlives the crash, would be asked in place of the lease
			return who, nil
		}
		farm(t, e, map[string]string{
			"handled": `
steps:
- step: activity hang with who = once
  on-error:
  - {step: log dealt with, condition: {error-cause: interrupted}, next: more}
- fail message not reached
- {id: more, step: activity hang with who = twice, on-error: {step: return by the other name, condition: {java-instance-of: DanglingWorkflowException}}}
`,
			"again": "steps:\n- {step: activity hang with who = again, idempotent: yes}\n- return ${output}\n",
			"by-hand": `
steps:
- {id: hang, step: activity hang with who = hand}
- return ${output}
`,
		}, map[string]func(context.Context, map[string]any) (any, error){"hang": hang})
		runs := map[string]*drover.Run{}
		for _, name := range []string{"handled", "again", "by-hand"} {
			runs[name] = start(t, e, name, name, nil)
		}
		e.Sleep(time.Minute)
		e.Crash(10 * time.Second)
		e.Sleep(time.Minute)
		e.Crash(10 * time.Second)
		for name, want := range map[string]string{"handled": `"by the other name"`, "again": `"again"`} {
			if out := e.Wait(runs[name]); string(out.Result) != want {
				t.Errorf("%s: got %s with %s %s, want %s", name, out.Status, out.Result, out.Details, want)
			}
		}
		if out := e.Wait(runs["by-hand"]); out.Reason != "interrupted" {
			t.Errorf("by hand: got %s, reason %s, want the failure interrupted", out.Status, out.Reason)
		}
		if _, err := runs["by-hand"].Replay(t.Context(), nil); !errors.Is(err, drover.ErrConflict) || !strings.Contains(err.Error(), "may not run twice") {
			t.Errorf("by hand: got %v, want a refusal (A0-9: no point, a clear error)", err)
		}
		var got string
		e.Result(replayed(t, runs["by-hand"], drover.ReplayOptions{Force: true, From: "hang"}).Run, &got)
		if got != "hand" {
			t.Errorf("by hand: got %q", got)
		}
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(map[string]int{"once": 1, "twice": 1, "again": 2, "hand": 2}, calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// What cannot be replayed is refused with a way out, and leaves nothing after.
func TestReplaysThatAreRefused(t *testing.T) {
	sample.OneOfEight(t)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		s := newShop()
		farm(t, e, map[string]string{
			"trade": "steps:\n- activity ship\n- sleep 1 day\n- return done\n",
			"brief": "retention: disabled\nsteps: [fail message no]\n",
			"outer": "steps:\n- {type: workflow, steps: [sleep 30 days]}\n",
		}, s.all("ship"))
		refused := func(run *drover.Run, o drover.ReplayOptions, want error, text string) {
			t.Helper()
			if _, err := run.Replay(t.Context(), &o); !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
				t.Errorf("replay of %s %s: got %v, want %v about %q", run.ID, run.RunID, err, want, text)
			}
		}
		refused(e.Client.Run("nobody", ""), drover.ReplayOptions{}, drover.ErrNotFound, "nobody")
		run := start(t, e, "trade", "t-1", nil)
		e.Sleep(time.Hour)
		refused(run, drover.ReplayOptions{}, drover.ErrConflict, "drover terminate t-1")
		e.Wait(run)
		refused(e.Client.Run("t-1", "01JD8Q3W6Z5T0V9N2B4M7K1XRA"), drover.ReplayOptions{}, drover.ErrNotFound, "gone by its retention")
		refused(run, drover.ReplayOptions{Reason: strings.Repeat("x", 2000)}, drover.ErrInvalid, "at most 1024")

		a := replayed(t, run, drover.ReplayOptions{From: "END"})
		if a.Run.RunID != run.RunID || a.Run.Started() || a.Plan == nil || a.Plan.From != schemas.ReplayFromEnd {
			t.Errorf("a run that has completed: got run %s, started %v, plan %+v, want nothing to do", a.Run.RunID, a.Run.Started(), a.Plan)
		}
		brief := start(t, e, "brief", "b-1", nil)
		fails(t, e, brief)
		if _, err := brief.Replay(t.Context(), &drover.ReplayOptions{From: "start", Force: true}); err == nil || !strings.Contains(err.Error(), "retention") {
			t.Errorf("a run that is not kept: got %v, want a refusal about its retention, whether it is gone already or not", err)
		}
		outer := start(t, e, "outer", "o-1", nil)
		e.Sleep(time.Hour)
		part := lastChild(e, "o-1", 1)
		if err := outer.Terminate(t.Context(), &drover.TerminateOptions{ChildPolicy: schemas.ChildTerminate}); err != nil {
			t.Fatal(err)
		}
		e.Wait(e.Client.Run(part, ""))
		refused(e.Client.Run(part, ""), drover.ReplayOptions{}, drover.ErrConflict, "parts are not replayed on their own")
		refused(outer, drover.ReplayOptions{}, drover.ErrConflict, "may not run twice")
		fresh := start(t, e, "trade", "t-1", nil)
		e.Wait(fresh)
		refused(run, drover.ReplayOptions{LatestOnly: true, From: "start"}, drover.ErrConflict, "is not the latest")
		if got := s.counts(); got["ship"] != 2 {
			t.Errorf("calls: %v, want two of ship", got)
		}
	})
}

// A flow that was terminated while it waited goes on where it stood; the whole state travels, however large.
func TestReplayOfALargeStateThatWasTerminated(t *testing.T) {
	sample.OneOfEight(t)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		farm(t, e, map[string]string{"trade": "steps:\n- let big = ${text}\n- sleep 10 days\n- return ${big}\n"}, nil)
		text := strings.Repeat("0123456789", schemas.PayloadThreshold/8)
		run := start(t, e, "trade", "t-1", map[string]any{"text": text})
		e.Sleep(time.Hour)
		if err := run.Terminate(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		e.Wait(run)
		began := time.Now()
		a := replayed(t, e.Client.Run("t-1", ""), drover.ReplayOptions{})
		var got string
		e.Result(a.Run, &got)
		if got != text || a.Plan.From != "1" || !a.Plan.Resumes {
			t.Errorf("got %d bytes by the plan %+v, want %d", len(got), a.Plan, len(text))
		}
		if took := time.Since(began); took < 10*24*time.Hour {
			t.Errorf("the replay took %v, want the sleep again", took)
		}
	})
}

// A replay is kept as long as the run that it goes on with, in that one's group, and tells of the same replay points.
func TestReplayKeepsRetentionAndPoints(t *testing.T) {
	sample.OneOfEight(t)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		s := newShop("work")
		farm(t, e, map[string]string{"trade": `
retention: hash of-${n} 7
steps:
- {id: one, step: let n = 1, replayable: from here}
- {id: two, step: let n = 2, replayable: from here}
- {id: work, step: "activity work with n = ${n}", idempotent: yes}
`}, s.all("work"))
		run := start(t, e, "trade", "t-1", map[string]any{"n": 3})
		fails(t, e, run)
		policy := func(run *drover.Run) (last *schemas.RetentionPolicy, points []string) {
			t.Helper()
			for ev, err := range run.History(t.Context(), drover.HistoryOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				switch a := ev.Attributes.(type) {
				case *schemas.WorkflowStarted:
					last = a.Retention
				case *schemas.RetentionSet:
					last = a.Policy
				}
			}
			d, err := run.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range d.ReplayPoints {
				points = append(points, p.Name)
			}
			return last, points
		}
		want, points := policy(run)
		if want == nil || len(points) != 2 {
			t.Fatalf("the first run has the retention %v and the points %v", want, points)
		}
		again := replayed(t, run, drover.ReplayOptions{}).Run
		fails(t, e, again)
		got, samePoints := policy(again)
		if diff := cmp.Diff(want, got) + cmp.Diff(points, samePoints); diff != "" {
			t.Errorf("retention and points (-first +replay):\n%s", diff)
		}
	})
}

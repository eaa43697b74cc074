package drovertest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// failing names the test that a child process runs. Such a test must fail, which only another process can look at.
const failing = "DROVERTEST_FAILING"

// failures are tests that must fail, with the words that tell why. The clock of a bubble that hangs stands still, so that
// nothing but the parent's patience would end it.
var failures = map[string]struct {
	test func(*testing.T)
	want []string
}{
	"an assertion": {inBubble(func(t *testing.T, e *drovertest.Env) {
		serve(e)
		start(t, e, "nap", "n")
		e.Await("n", schemas.EventTimerScheduled)
		t.Fatal("two and two is five")
	}), []string{"two and two is five", `history of workflow "n"`, "5 +", "TimerScheduled nap"}},
	"an assertion in an activity": {inBubble(func(t *testing.T, e *drovertest.Env) {
		serve(e)
		labour(e, func(context.Context, string) (string, error) {
			t.Error("a bad input")
			return "", errors.New("a bad input")
		})
		e.Result(start(t, e, "work", "w"), nil)
	}), []string{"a bad input", "not waiting any longer"}},
	"the end of an activity's goroutine": {inBubble(func(t *testing.T, e *drovertest.Env) {
		serve(e)
		labour(e, func(context.Context, string) (string, error) {
			t.FailNow()
			return "", nil
		})
		e.Result(start(t, e, "work", "w"), nil)
	}), []string{"not waiting any longer"}},
	"calls in a range over a map": {func(t *testing.T) {
		travel(t, &drovertest.Options{Seed: -1}, func(ctx workflow.Context, _ []string) (string, error) {
			all := map[string]int{}
			for n := range 100 {
				all[fmt.Sprint("place ", n)] = n
			}
			for place := range all {
				workflow.Start(ctx, shout, place)
			}
			return "home", workflow.Sleep(ctx, time.Minute)
		})
	}, []string{"replayed with what its history has", "ScheduleActivity shout#1 ", "failing_test.go", ` has "place `, ` gives "place `, "range over a map"}},
	"an activity that never ends": {inBubble(func(t *testing.T, e *drovertest.Env) {
		serve(e)
		labour(e, func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		start(t, e, "work", "w")
		e.Await("w", schemas.EventActivityStarted)
		t.Fatal("enough")
	}), []string{"enough"}},
	"a failed workflow": {inBubble(func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Deciders(nil)
		w.Register("fails", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			return []schemas.Decision{decider.Fail("out-of-oxen", nil)}, nil
		}))
		e.Go(w)
		e.Result(start(t, e, "fails", "f"), nil)
	}), []string{"out-of-oxen"}},
	"an event that never comes": {inBubble(func(t *testing.T, e *drovertest.Env) {
		serve(e)
		start(t, e, "nap", "n")
		e.Await("n", schemas.EventMarker)
	}), []string{`workflow "n" run `, `has ended (WorkflowSuccess) without the event Marker`}},
	"a run that never ends": {inBubble(func(t *testing.T, e *drovertest.Env) {
		run, err := e.Client.Start(t.Context(), "nobody's", nil, &drover.StartOptions{Timeout: drover.Unlimited})
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Pause(t.Context(), "for good"); err != nil {
			t.Fatal(err)
		}
		e.Wait(run)
	}), []string{"not waiting any longer than 17520h"}},
	"a run that nobody decides": {inBubble(func(t *testing.T, e *drovertest.Env) {
		serve(e)
		e.Result(start(t, e, "misspelt", "m"), nil)
	}), []string{"the run waits for a decider, and nobody listens", "type=misspelt", "timed out"}},
	"a worker that ends": {inBubble(func(_ *testing.T, e *drovertest.Env) {
		e.Go(e.Client.Activities(&activity.Options{Lists: []string{"no list"}}))
		e.Sleep(time.Second)
	}), []string{"*activity.Worker ended by itself", "no list"}},
	"an unknown workflow": {inBubble(func(_ *testing.T, e *drovertest.Env) { e.History("nobody") }), []string{`drover: history "nobody"`}},
	"bad partitions": {func(t *testing.T) {
		drovertest.Run(t, &drovertest.Options{Partitions: 257}, func(*testing.T, *drovertest.Env) {})
	}, []string{"Options.Partitions is 257"}},
	"a bad namespace": {func(t *testing.T) { drovertest.Start(t, &drovertest.Options{Namespace: "a.b"}) }, []string{"Options.Namespace", "a.b"}},
	"a Run inside a Run": {inBubble(func(t *testing.T, _ *drovertest.Env) {
		drovertest.Run(t, nil, func(*testing.T, *drovertest.Env) {})
	}), []string{"Run inside another Run"}},
	"workflow code that does something else each time": {func(t *testing.T) {
		calls := 0
		travel(t, &drovertest.Options{Seed: -1}, func(ctx workflow.Context, places []string) (string, error) {
			if calls++; calls > 1 {
				return "", workflow.Sleep(ctx, time.Hour)
			}
			return visit(ctx, places)
		}, "a")
	}, []string{`was replayed`, "event 4:", "ScheduleActivity shout#1", "ScheduleTimer timer#1", "failing_test.go:"}},
	"a test whose runs leave the memory": {inBubble(func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		workflow.Implement(w, tour, visit, nil)
		e.Go(w)
		t.Error("two and two is five")
	}), []string{"left the memory of their workers by Options.Seed: "}},
	"a broken history": {inBubble(func(t *testing.T, e *drovertest.Env) {
		forge(t, e, &schemas.Record{WorkflowID: "w", Run: "r", First: 1, Events: []schemas.Event{
			{ID: 1, Time: schemas.At(time.Now()), Attributes: &schemas.Marker{MarkerName: "m"}},
		}})
	}), []string{"breaks a rule, which is a bug of Drover", "want WorkflowStarted"}},
}

func inBubble(f func(*testing.T, *drovertest.Env)) func(*testing.T) {
	return func(t *testing.T) { drovertest.Run(t, nil, f) }
}

// forge writes a record as only the owner of a partition should.
func forge(t *testing.T, e *drovertest.Env, r *schemas.Record) {
	t.Helper()
	body, err := schemas.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	ns := subject.Namespace(e.Client.Namespace())
	if _, err := natsconn.Of(e.Client).JetStream().Publish(t.Context(), ns.History(0, r.WorkflowID, r.Run), body); err != nil {
		t.Fatal(err)
	}
}

// TestFailing is what the child runs; in the parent it has nothing to do.
func TestFailing(t *testing.T) {
	if f, ok := failures[os.Getenv(failing)]; ok {
		f.test(t)
	}
}

// A test that fails ends, whatever it left over, and says why.
func TestFailuresEnd(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range failures {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, exe, "-test.run=^TestFailing$")
			cmd.Env = append(os.Environ(), failing+"="+name)
			out, err := cmd.CombinedOutput()
			if ctx.Err() != nil {
				t.Fatalf("it hangs:\n%s", out)
			}
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() < 1 {
				t.Fatalf("got %v, want a failed test:\n%s", err, out)
			}
			for _, want := range tt.want {
				if !bytes.Contains(out, []byte(want)) {
					t.Errorf("the output lacks %q:\n%s", want, out)
				}
			}
			if strings.Contains(string(out), "panic: deadlock") {
				t.Errorf("goroutines are left:\n%s", out)
			}
		})
	}
}

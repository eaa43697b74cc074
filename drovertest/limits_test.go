package drovertest_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// forever is what Go programs write for "no limit".
const forever = time.Duration(math.MaxInt64)

// What a limit may be does not hang on how the decider was asked: a run's first task is JSON, and later ones of its own worker are msgpack.
func TestLimitsAreTheSameInBothEncodings(t *testing.T) {
	cases := []struct {
		name  string
		start drover.StartOptions
		do    schemas.Decision
		want  string
	}{
		{"execution", drover.StartOptions{Timeout: forever, DecisionTimeout: forever, DecisionWait: forever}, limitedWork(), "done"},
		{"start to close", drover.StartOptions{}, limitedWork(decider.StartToClose(forever)), "done"},
		{"schedule to close", drover.StartOptions{}, limitedWork(decider.ScheduleToClose(forever)), "done"},
		{"schedule to start", drover.StartOptions{}, limitedWork(decider.ScheduleToStart(forever)), "done"},
		{"heartbeat", drover.StartOptions{}, limitedWork(decider.Heartbeat(forever)), "done"},
		{"negative heartbeat", drover.StartOptions{}, limitedWork(decider.Heartbeat(-time.Second)), "refused"},
		{"timer of the past", drover.StartOptions{}, decider.Timer("a", -time.Millisecond), "refused"},
	}
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		d := e.Client.Deciders(nil)
		a := e.Client.Activities(&activity.Options{Lists: []string{"main"}})
		activity.Register(a, "work", func(context.Context, string) (string, error) { return "done", nil })
		typ := func(i int, encoding string) string { return fmt.Sprint(encoding, i) }
		for i, tt := range cases {
			d.Register(typ(i, "JSON"), limited(tt.do, false))
			d.Register(typ(i, "msgpack"), limited(tt.do, true))
		}
		e.Go(d, a)
		for i, tt := range cases {
			for _, encoding := range []string{"JSON", "msgpack"} {
				run, err := e.Client.Start(t.Context(), typ(i, encoding), "in", &tt.start)
				if err != nil {
					t.Fatal(err)
				}
				var got string
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if err := run.Result(ctx, &got); err != nil || got != tt.want {
					why, _ := run.Why(t.Context())
					t.Errorf("%s in %s: got %q and %v, want %q: %s\n%s", tt.name, encoding, got, err, tt.want, why, e.History(run.ID))
					_ = run.Terminate(t.Context(), nil)
				}
				cancel()
			}
		}
	})
}

func limitedWork(o ...decider.ActivityOption) schemas.Decision {
	return decider.Schedule("a", "work", "in", append(o, decider.List("main"))...)
}

// limited makes a decision, at once or as its second one, and completes with what came of it.
func limited(do schemas.Decision, warm bool) decider.Func {
	return func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
		for _, ev := range task.Events() {
			switch ev.Attributes.(type) {
			case *schemas.ActivitySuccess:
				return []schemas.Decision{decider.Complete("done")}, nil
			case *schemas.ActivityScheduleFailed, *schemas.TimerScheduleFailed:
				return []schemas.Decision{decider.Complete("refused")}, nil
			case *schemas.WorkflowStarted:
				if warm {
					return []schemas.Decision{decider.Timer("warm", time.Second)}, nil
				}
				return []schemas.Decision{do}, nil
			case *schemas.TimerExpired:
				return []schemas.Decision{do}, nil
			}
		}
		return nil, nil
	}
}

func TestNegativeDefaultsAreRefused(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		_, err := e.Client.Start(t.Context(), "w", "in", &drover.StartOptions{ActivityDefaults: &schemas.ActivityDefaults{HeartbeatTimeout: schemas.Seconds(-5)}})
		if err == nil || !strings.Contains(err.Error(), "activityDefaults.heartbeatTimeout: it is negative") {
			t.Fatalf("got %v, want an error that names activityDefaults.heartbeatTimeout", err)
		}
	})
}

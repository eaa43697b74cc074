package drovertest_test

import (
	"context"
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
	for _, tt := range []struct {
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
	} {
		for encoding, warm := range map[string]bool{"JSON": false, "msgpack": true} {
			t.Run(tt.name+"/"+encoding, func(t *testing.T) {
				drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) { limited(t, e, &tt.start, tt.do, warm, tt.want) })
			})
		}
	}
}

func limitedWork(o ...decider.ActivityOption) schemas.Decision {
	return decider.Schedule("a", "work", "in", append(o, decider.List("main"))...)
}

func limited(t *testing.T, e *drovertest.Env, start *drover.StartOptions, do schemas.Decision, warm bool, want string) {
	d := e.Client.Deciders(nil)
	d.Register("w", decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
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
	}))
	e.Go(d)
	a := e.Client.Activities(&activity.Options{Lists: []string{"main"}})
	activity.Register(a, "work", func(context.Context, string) (string, error) { return "done", nil })
	e.Go(a)
	run, err := e.Client.Start(t.Context(), "w", "in", start)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got string
	if err := run.Result(ctx, &got); err != nil || got != want {
		why, _ := run.Why(t.Context())
		t.Errorf("got %q and %v, want %q: %s\n%s", got, err, want, why, e.History(run.ID))
		_ = run.Terminate(t.Context(), nil)
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

package drovertest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

const day = 24 * time.Hour

// nap completes after a timer of 30 days, or at once with the input of the signal "wake".
var nap = decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	run, err := t.View(ctx)
	if err != nil {
		return nil, err
	}
	switch woken := run.Signals("wake"); {
	case len(woken) > 0:
		return []schemas.Decision{decider.Complete(woken[0])}, nil
	case run.Timer("nap") == 0:
		return []schemas.Decision{decider.Timer("nap", 30*day)}, nil
	case run.Timer("nap") == decider.TimerFired:
		return []schemas.Decision{decider.Complete("rested")}, nil
	}
	return nil, nil
})

// work schedules the activity "work" with retries after 1 h, 2 h, 4 h and so on, and completes or fails with it.
var work = decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	run, err := t.View(ctx)
	if err != nil {
		return nil, err
	}
	status, result, reason := run.Activity("work")
	switch {
	case status == decider.ActivitySucceeded:
		return []schemas.Decision{decider.Complete(result)}, nil
	case status.Closed():
		return []schemas.Decision{decider.Fail(reason, nil)}, nil
	case status.Open():
		return nil, nil
	}
	retry := schemas.RetryPolicy{MaximumAttempts: 4, InitialInterval: schemas.Duration(time.Hour), BackoffCoefficient: 2}
	return []schemas.Decision{decider.Schedule("work", "work", run.Input(), decider.List("main"), decider.Retry(retry))}, nil
})

// serve runs the deciders nap and work until the test ends.
func serve(e *drovertest.Env) {
	w := e.Client.Deciders(nil)
	w.Register("nap", nap)
	w.Register("work", work)
	e.Go(w)
}

// labour runs fn as the activity work until the test ends.
func labour(e *drovertest.Env, fn func(context.Context, string) (string, error)) {
	w := e.Client.Activities(&activity.Options{Lists: []string{"main"}})
	activity.Register(w, "work", fn)
	e.Go(w)
}

func start(t *testing.T, e *drovertest.Env, typ, id string) *drover.Run {
	t.Helper()
	run, err := e.Client.Start(t.Context(), typ, "input", &drover.StartOptions{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// wantAfter checks how much virtual time has passed. Work takes none, delivery and commits up to some milliseconds.
func wantAfter(t *testing.T, since time.Time, want, slack time.Duration) {
	t.Helper()
	if took := time.Since(since); took < want || took > want+slack {
		t.Fatalf("took %v, want %v and at most %v more", took, want, slack)
	}
}

func wantHistory(t *testing.T, e *drovertest.Env, id, want string) {
	t.Helper()
	if got := e.History(id).String(); got != want {
		t.Fatalf("history of %s:\n%s\nwant:\n%s", id, got, want)
	}
}

const napped = `1 WorkflowStarted
2 DeciderScheduled
3 DeciderStarted
4 DeciderCompleted
5 TimerScheduled nap
6 TimerExpired nap
7 DeciderScheduled
8 DeciderStarted
9 DeciderCompleted
10 WorkflowSuccess`

func TestThirtyDays(t *testing.T) {
	began := time.Now()
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		serve(e)
		since := time.Now()
		var got string
		e.Result(start(t, e, "nap", "n"), &got)
		if got != "rested" {
			t.Fatalf("got %q, want rested", got)
		}
		wantAfter(t, since, 30*day, 10*time.Millisecond)
		wantHistory(t, e, "n", napped)
	})
	took := time.Since(began)
	t.Logf("30 days in %v", took)
	if took > time.Minute { // waiting takes ten minutes, a leap a fraction of a second, on any machine
		t.Fatalf("took %v: the time was waited for and not leapt over", took)
	}
}

// Leaps give the same times as waiting does.
func TestSleepIsExact(t *testing.T) {
	drovertest.Run(t, &drovertest.Options{Partitions: 3, Namespace: "lab"}, func(t *testing.T, e *drovertest.Env) {
		if got := e.Client.Namespace(); got != "lab" {
			t.Fatalf("got namespace %q, want lab", got)
		}
		serve(e)
		since := time.Now()
		run := start(t, e, "nap", "n")
		e.Sleep(30*day - time.Second)
		wantAfter(t, since, 30*day-time.Second, 10*time.Millisecond)
		now, err := run.Describe(t.Context())
		if err != nil || now.Execution.Status != schemas.StatusOpen {
			t.Fatalf("a second early: got %v, %v, want an open run", now, err)
		}
		e.Sleep(time.Second + 10*time.Millisecond)
		if out := e.Wait(run); out.Status != schemas.StatusCompleted {
			t.Fatalf("got %+v, want completed", out)
		}
		wantAfter(t, since, 30*day, 30*time.Millisecond)
	})
}

func TestRetries(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		serve(e)
		var attempts atomic.Int32
		labour(e, func(_ context.Context, in string) (string, error) {
			if attempts.Add(1) < 4 {
				return "", &activity.Failure{Reason: "not-yet"}
			}
			return in + " done", nil
		})
		since := time.Now()
		var got string
		e.Result(start(t, e, "work", "w"), &got)
		if got != "input done" || attempts.Load() != 4 {
			t.Fatalf("got %q after %d attempts, want them done after 4", got, attempts.Load())
		}
		wantAfter(t, since, 7*time.Hour, 7*time.Hour/2)
		wantHistory(t, e, "w", `1 WorkflowStarted
2 DeciderScheduled
3 DeciderStarted
4 DeciderCompleted
5 ActivityScheduled work
6 ActivityStarted work
7 ActivityRetryScheduled work not-yet
8 ActivityStarted work attempt 2
9 ActivityRetryScheduled work not-yet
10 ActivityStarted work attempt 3
11 ActivityRetryScheduled work not-yet
12 ActivityStarted work attempt 4
13 ActivitySuccess work
14 DeciderScheduled
15 DeciderStarted
16 DeciderCompleted
17 WorkflowSuccess`)
	})
}

// A decider that fails is asked again.
func TestDeciderIsAskedAgain(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		var asked atomic.Int32
		w := e.Client.Deciders(nil)
		w.Register("clumsy", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			if asked.Add(1) < 3 {
				return nil, errors.New("stumbled")
			}
			return []schemas.Decision{decider.Complete("upright")}, nil
		}))
		e.Go(w)
		e.Result(start(t, e, "clumsy", "c"), nil)
		if got := asked.Load(); got != 3 {
			t.Fatalf("asked %d times, want 3", got)
		}
	})
}

// The server of a test is the real one, which can be stopped. sdk-go#1961, #108.
func TestRestart(t *testing.T) {
	for name, bounce := range map[string]func(*drovertest.Env, time.Duration){"restart": (*drovertest.Env).Restart, "crash": (*drovertest.Env).Crash} {
		t.Run(name, func(t *testing.T) {
			drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
				serve(e)
				release := make(chan struct{})
				labour(e, func(ctx context.Context, in string) (string, error) {
					<-release
					return in + " done", nil
				})
				since := time.Now()
				slow, long := start(t, e, "work", "w"), start(t, e, "nap", "n")
				e.Await("w", schemas.EventActivityStarted)
				e.Await("n", schemas.EventTimerScheduled)
				bounce(e, 5*time.Minute)
				wantAfter(t, since, 5*time.Minute, 2*time.Second)
				close(release)
				var got string
				e.Result(slow, &got)
				if got != "input done" {
					t.Fatalf("got %q, want input done", got)
				}
				bounce(e, time.Minute)
				e.Result(long, nil)
				wantAfter(t, since, 30*day, 10*time.Millisecond)
				wantHistory(t, e, "n", napped)
			})
		})
	}
}

// A timer that was due while the server was down rings when it is up.
func TestDueWhileDown(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		serve(e)
		run := start(t, e, "nap", "n")
		e.Sleep(30*day - time.Minute)
		since := time.Now()
		e.Restart(time.Hour)
		e.Result(run, nil)
		wantAfter(t, since, time.Hour, 2*time.Second)
	})
}

// Whoever speaks during a leap ends it.
func TestLeapIsInterrupted(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		serve(e)
		run := start(t, e, "nap", "n")
		since := time.Now()
		told := make(chan error, 1)
		go func() {
			time.Sleep(3*day + time.Second/2)
			told <- e.Client.Run("n", "").Signal(context.Background(), "wake", "up")
		}()
		var got string
		e.Result(run, &got)
		if err := <-told; err != nil || got != "up" {
			t.Fatalf("got %q, %v, want up", got, err)
		}
		wantAfter(t, since, 3*day, 10*time.Second)
	})
}

// A run without any limit has no alarm, and only others can move it.
func TestLeapWithoutAlarm(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Deciders(nil)
		w.Register("patient", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			run, err := task.View(ctx)
			if err != nil || len(run.Signals("wake")) == 0 {
				return nil, err
			}
			return []schemas.Decision{decider.Complete("at last")}, nil
		}))
		e.Go(w)
		since := time.Now()
		run, err := e.Client.Start(t.Context(), "patient", nil, &drover.StartOptions{Timeout: drover.Unlimited})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(500 * day)
			if err := run.Signal(context.Background(), "wake", nil); err != nil {
				t.Error(err)
			}
		}()
		e.Result(run, nil)
		wantAfter(t, since, 500*day, 10*time.Second)
	})
}

// So does whoever changes the Env, and others that wait do not lose their time.
func TestWaitTogether(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		serve(e)
		since := time.Now()
		one, two := start(t, e, "nap", "one"), start(t, e, "nap", "two")
		ended := make(chan time.Duration, 3)
		go func() { e.Wait(one); ended <- time.Since(since) }()
		go func() { e.Sleep(10 * day); ended <- time.Since(since) }()
		go func() {
			time.Sleep(5*day + time.Second)
			e.Restart(time.Second)
			ended <- time.Since(since)
		}()
		e.Wait(two)
		for _, want := range []time.Duration{5*day + 2*time.Second, 10 * day, 30 * day} {
			if got := <-ended; got < want || got > want+2*time.Second {
				t.Fatalf("got %v, want %v and at most 2 s more", got, want)
			}
		}
	})
}

// Whoever comes ends a leap, and finds what waits for it.
func TestWorkersComeLate(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		run := start(t, e, "work", "w")
		e.Sleep(100 * day)
		begun := time.Now()
		go func() {
			time.Sleep(10*day + time.Second)
			serve(e)
		}()
		e.Await("w", schemas.EventActivityScheduled)
		wantAfter(t, begun, 10*day, 10*time.Second)
		e.Sleep(10 * time.Minute)
		labour(e, func(_ context.Context, in string) (string, error) { return in, nil })
		since := time.Now()
		e.Result(run, nil)
		wantAfter(t, since, 0, 2*time.Second)
	})
}

func TestStopAWorker(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		serve(e)
		w := e.Client.Activities(&activity.Options{Lists: []string{"main"}})
		activity.Register(w, "work", func(ctx context.Context, in string) (string, error) { return "first", nil })
		stop := e.Go(w)
		e.Result(start(t, e, "work", "w1"), nil)
		stop()
		stop()
		run := start(t, e, "work", "w2")
		e.Sleep(time.Hour)
		if now, err := run.Describe(t.Context()); err != nil || now.Execution.Status != schemas.StatusOpen {
			t.Fatalf("got %+v, %v, want an open run: its worker has stopped", now, err)
		}
		labour(e, func(context.Context, string) (string, error) { return "second", nil })
		var got string
		e.Result(run, &got)
		if got != "second" {
			t.Fatalf("got %q, want second", got)
		}
	})
}

// A workflow that waits for another one, on another partition, is leapt over like one that waits for a timer.
func TestChild(t *testing.T) {
	drovertest.Run(t, &drovertest.Options{Partitions: 4}, func(t *testing.T, e *drovertest.Env) {
		serve(e)
		w := e.Client.Deciders(nil)
		w.Register("parent", decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			for _, event := range task.Events() {
				switch a := event.Attributes.(type) {
				case *schemas.WorkflowStarted:
					child := &schemas.StartChild{WorkflowID: "child", WorkflowType: "nap"}
					return []schemas.Decision{{Attributes: child}}, nil
				case *schemas.ChildSuccess:
					return []schemas.Decision{decider.Complete(a.Result)}, nil
				}
			}
			return nil, nil
		}))
		e.Go(w)
		since := time.Now()
		var got string
		e.Result(start(t, e, "parent", "parent"), &got)
		if got != "rested" {
			t.Fatalf("got %q, want rested", got)
		}
		wantAfter(t, since, 30*day, 50*time.Millisecond)
		wantHistory(t, e, "child", napped)
		wantHistory(t, e, "parent", `1 WorkflowStarted
2 DeciderScheduled
3 DeciderStarted
4 DeciderCompleted
5 ChildScheduled child
6 ChildStarted child
7 ChildSuccess child
8 DeciderScheduled
9 DeciderStarted
10 DeciderCompleted
11 WorkflowSuccess`)
	})
}

func TestURLIsEmptyInside(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		if got := e.URL(); got != "" {
			t.Fatalf("got %q, want none", got)
		}
	})
}

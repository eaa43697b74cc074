package drovertest_test

import (
	"context"
	"log"
	"os/exec"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// test is what an example is: a test, to be written as "func TestReminder(t *testing.T) { … }".
var test func(*testing.T)

// The examples run, as the tests that they are.
func TestExamples(t *testing.T) {
	for name, example := range map[string]func(){
		"Run": ExampleRun, "Start": ExampleStart, "Go": ExampleEnv_Go, "Restart": ExampleEnv_Restart, "History": ExampleEnv_History,
	} {
		example()
		t.Run(name, test)
	}
}

// remind is the decider under test: it waits a month and completes.
func remind(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	run, err := t.View(ctx)
	if err != nil {
		return nil, err
	}
	switch run.Timer("month") {
	case 0:
		return []schemas.Decision{decider.Timer("month", 30*24*time.Hour)}, nil
	case decider.TimerFired:
		return []schemas.Decision{decider.Complete("remember to pay")}, nil
	}
	return nil, nil
}

// A month of a workflow's life, in a fraction of a second.
func ExampleRun() {
	test = func(t *testing.T) {
		drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
			deciders := e.Client.Deciders(nil)
			deciders.Register("reminder", decider.Func(remind))
			e.Go(deciders)

			run, err := e.Client.Start(t.Context(), "reminder", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			var text string
			e.Result(run, &text)
			if days := time.Since(began).Hours() / 24; text != "remember to pay" || int(days) != 30 {
				t.Fatalf("got %q after %v days", text, days)
			}
		})
	}
}

// Another process finds the server by its address.
func ExampleStart() {
	test = func(t *testing.T) {
		e := drovertest.Start(t, nil)
		// Here the other process would be a worker in another language.
		worker := exec.Command("env")
		worker.Env = append(worker.Environ(), "NATS_URL="+e.URL())
		if err := worker.Run(); err != nil {
			t.Fatal(err)
		}
	}
}

// Workers run from Go to the end of the test.
func ExampleEnv_Go() {
	test = func(t *testing.T) {
		drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
			deciders := e.Client.Deciders(nil)
			deciders.Register("reminder", decider.Func(remind))
			activities := e.Client.Activities(&activity.Options{Lists: []string{"mail"}})
			activity.Register(activities, "send", func(_ context.Context, text string) (string, error) {
				log.Print(text)
				return "sent", nil
			})
			e.Go(deciders, activities)
		})
	}
}

// What happens if the server is down when the timer is due?
func ExampleEnv_Restart() {
	test = func(t *testing.T) {
		drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
			deciders := e.Client.Deciders(nil)
			deciders.Register("reminder", decider.Func(remind))
			e.Go(deciders)
			run, err := e.Client.Start(t.Context(), "reminder", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			e.Sleep(30*24*time.Hour - time.Minute)
			e.Restart(time.Hour)
			e.Result(run, nil)
		})
	}
}

// The course of a workflow is a text that can be compared.
func ExampleEnv_History() {
	test = func(t *testing.T) {
		drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
			deciders := e.Client.Deciders(nil)
			deciders.Register("reminder", decider.Func(remind))
			e.Go(deciders)
			run, err := e.Client.Start(t.Context(), "reminder", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			e.Await(run.ID, schemas.EventTimerScheduled)
			want := "1 WorkflowStarted\n2 DeciderScheduled\n3 DeciderStarted\n4 DeciderCompleted\n5 TimerScheduled month"
			if got := e.History(run.ID).String(); got != want {
				t.Fatalf("got\n%s", got)
			}
		})
	}
}

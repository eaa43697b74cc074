package main

import (
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
)

// house runs the workers inside a test.
func house(e *drovertest.Env) {
	deciders := e.Client.Deciders(nil)
	deciders.Register("welcome", decider.Func(welcome))
	activities := e.Client.Activities(&activity.Options{Lists: []string{"mail"}})
	activity.Register(activities, "mail", mail)
	e.Go(deciders, activities)
}

// Three days pass in a fraction of a second: the clock of the test is not that of the world.
func TestReminder(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		house(e)
		run, err := e.Client.Start(t.Context(), "welcome", "ada@example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var how string
		e.Result(run, &how)
		if days := time.Since(began).Hours() / 24; how != "reminded" || int(days) != 3 {
			t.Fatalf("got %q after %v days, want reminded after 3", how, days)
		}
	})
}

// The server goes away for an hour, and the workflow goes on where it was.
func TestConfirmation(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		house(e)
		run, err := e.Client.Start(t.Context(), "welcome", "ada@example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		e.Sleep(time.Hour)
		e.Restart(time.Hour)
		if err := run.Signal(t.Context(), "confirmed", nil); err != nil {
			t.Fatal(err)
		}
		var how string
		e.Result(run, &how)
		if how != "confirmed" {
			t.Fatalf("got %q, want confirmed", how)
		}
	})
}

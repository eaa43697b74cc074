package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
)

func TestGreetings(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		workflow.Implement(w, Greetings, greetings, nil)
		e.Go(w)
		run, err := drover.Start(t.Context(), e.Client, Greetings, "fr", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := run.Result(t.Context()); !strings.HasPrefix(got, "Bonjour, ") || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		run, err = drover.Start(t.Context(), e.Client, Greetings, "klingon", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := run.Result(t.Context()); !errors.Is(err, Unspoken) {
			t.Errorf("got %q, %v; want a fault", got, err)
		}
	})
}

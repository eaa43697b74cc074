package main

import (
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
)

func TestHello(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		workflow.Implement(w, Hello, hello, nil)
		activity.Implement(w, Greet, greet)
		e.Go(w)
		run, err := drover.Start(t.Context(), e.Client, Hello, "World", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := drovertest.Result(e, run); got != "Hello, World!" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

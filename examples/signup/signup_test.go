package main

import (
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/drovertest"

	"github.com/droverhq/drover/examples/signup/contracts"
)

// The whole of Drover runs in the test, in virtual time: three days pass in a moment.
func TestReminder(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		implement(w)
		e.Go(w)
		run, err := drover.Start(t.Context(), e.Client, contracts.Signup, "ada@example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		how, err := drovertest.Result(e, run)
		if how != "reminded" || err != nil {
			t.Errorf("got %q, %v; want reminded", how, err)
		}
	})
}

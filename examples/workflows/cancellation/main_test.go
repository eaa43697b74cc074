package main

import (
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

func TestCanceledFireIsPutOut(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		implement(w)
		e.Go(w)
		run, err := drover.Start(t.Context(), e.Client, Campfire, 300, nil)
		if err != nil {
			t.Fatal(err)
		}
		e.Await(run.ID, schemas.EventActivityStarted)
		if err := run.Cancel(t.Context(), "we go home"); err != nil {
			t.Fatal(err)
		}
		if o := e.Wait(run.Run); o.Status != schemas.StatusCanceled {
			t.Errorf("the run is %s %s, want canceled", o.Status, o.Reason)
		}
		e.Await(run.ID, schemas.EventActivityCanceled) // the fire
		e.Await(run.ID, schemas.EventActivitySuccess)  // what puts it out
	})
}

func TestFireBurnsDown(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		implement(w)
		e.Go(w)
		run, err := drover.Start(t.Context(), e.Client, Campfire, 300, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := drovertest.Result(e, run); got != "ashes" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

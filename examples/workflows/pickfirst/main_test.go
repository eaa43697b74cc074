package main

import (
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

func TestTheFirstBusCounts(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		implement(w)
		e.Go(w)
		for want, buses := range map[string][2]Bus{
			"7":  {{"7", 10}, {"12", 300}},
			"12": {{"7", 300}, {"12", 10}},
		} {
			run, err := drover.Start(t.Context(), e.Client, GoByBus, buses, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := drovertest.Result(e, run); got != want || err != nil {
				t.Errorf("got the bus %q, %v; want %q", got, err, want)
			}
			e.Await(run.ID, schemas.EventActivityCanceled) // the other one
		}
	})
}

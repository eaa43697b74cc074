package main

import (
	"slices"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/drovertest"
)

func TestRace(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		implement(w)
		e.Go(w)
		run, err := drover.Start(t.Context(), e.Client, Race, []Runner{
			{"snail", 90}, {"hare", 30}, {"foal", 0}, {"dog", 60},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := drovertest.Result(e, run)
		if want := []string{"hare", "dog", "snail"}; !slices.Equal(got, want) || err != nil {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	})
}

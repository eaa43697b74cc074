package main

import (
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/drovertest"
)

func TestPrint(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		implement(w)
		e.Go(w)
		for _, tc := range []struct {
			paper int
			want  string
		}{
			{20, "7 pages in 3 attempts"},
			{5, "no paper for page 6"},
		} {
			d := Document{Pages: 7, Paper: tc.paper}
			run, err := drover.Start(t.Context(), e.Client, PrintDocument, d, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := drovertest.Result(e, run); got != tc.want || err != nil {
				t.Errorf("with %d sheets: got %q, %v; want %q", tc.paper, got, err, tc.want)
			}
		}
	})
}

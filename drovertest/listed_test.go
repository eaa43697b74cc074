package drovertest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// Lists read headers, and JetStream refuses a record with more than 64 KiB of them. That must not stop a partition.
func TestMoreThanListsCanShow(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		large := strings.Repeat("x", 70<<10)
		w := e.Client.Deciders(nil)
		w.Register("note", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			return []schemas.Decision{schemas.Decide(&schemas.SetAttributes{Attributes: map[string]string{"note": large}}), decider.Complete(nil)}, nil
		}))
		e.Go(w)
		for name, o := range map[string]*drover.StartOptions{
			"attributes": {Attributes: map[string]string{"note": large}},
			"tag":        {Tags: []string{large}},
			"version":    {TypeVersion: large},
			"escapes":    {Attributes: map[string]string{"note": strings.Repeat("\x01", 11<<10)}},
		} {
			if _, err := e.Client.Start(ctx, "note", nil, o); !errors.Is(err, drover.ErrTooLarge) {
				t.Errorf("%s: got %v, want ErrTooLarge", name, err)
			}
		}
		run, err := e.Client.Start(ctx, "note", nil, &drover.StartOptions{ID: "n"})
		if err == nil {
			err = run.Result(ctx, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		d, err := run.Describe(ctx)
		if err != nil || d.Execution.Attributes["note"] != large {
			t.Errorf("got %d bytes and %v, want the attribute as it was set", len(d.Execution.Attributes["note"]), err)
		}
		for line, err := range e.Client.List(ctx, drover.ListOptions{Status: schemas.StatusCompleted}) {
			if err != nil || line.WorkflowID != "n" || line.Attributes != nil {
				t.Errorf("got %q with %d attributes and %v, want the run without", line.WorkflowID, len(line.Attributes), err)
			}
		}
	})
}

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

// Lists read headers, and JetStream refuses a record with more than 64 KiB of them. That must not stop a partition: what is too large is
// refused, and what only the form of the headers makes so is not shown.
func TestMoreThanListsCanShow(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		large, escaped := strings.Repeat("x", 70<<10), strings.Repeat("\x01", 11<<10)
		w := e.Client.Deciders(nil)
		w.Register("note", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			return []schemas.Decision{decider.SetAttributes(map[string]string{"note": escaped}), decider.Complete(nil)}, nil
		}))
		e.Go(w)
		for name, o := range map[string]*drover.StartOptions{
			"attributes": {Attributes: map[string]string{"note": large}},
			"tag":        {Tags: []string{large}},
			"version":    {TypeVersion: large},
		} {
			if _, err := e.Client.Start(ctx, "note", nil, o); !errors.Is(err, drover.ErrInvalid) {
				t.Errorf("%s: got %v, want %v", name, err, drover.ErrInvalid)
			}
		}
		for id, o := range map[string]*drover.StartOptions{"set": {}, "given": {Attributes: map[string]string{"note": escaped}}} {
			o.ID = id
			run, err := e.Client.Start(ctx, "note", nil, o)
			if err == nil {
				err = run.Result(ctx, nil)
			}
			if err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			d, err := run.Describe(ctx)
			if err != nil || d.Execution.Attributes["note"] != escaped {
				t.Errorf("%s: got %d bytes and %v, want the attribute as it was set", id, len(d.Execution.Attributes["note"]), err)
			}
		}
		listed := 0
		for line, err := range e.Client.List(ctx, drover.ListOptions{Status: schemas.StatusCompleted}) {
			if err != nil || line.Attributes != nil {
				t.Errorf("got %q with %d attributes and %v, want the run without", line.WorkflowID, len(line.Attributes), err)
			}
			listed++
		}
		if listed != 2 {
			t.Errorf("%d runs are listed, want 2", listed)
		}
	})
}

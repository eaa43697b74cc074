package decider_test

import (
	"context"
	"errors"
	"testing"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// checker has seen so many events of a history.
type checker struct {
	decider.Func
	seen int
}

func (c *checker) Check(ctx context.Context, t *decider.Task) error {
	for _, err := range t.History(ctx) {
		if err != nil {
			return err
		}
		c.seen++
	}
	if t.Type() != "order" || t.Execution() != (schemas.Execution{WorkflowID: "w", Run: "r"}) {
		panic("another run")
	}
	return nil
}

// A history is checked from its beginning, whole, by those who can.
func TestCheck(t *testing.T) {
	started := schemas.Event{ID: 1, Attributes: &schemas.WorkflowStarted{WorkflowID: "w", Run: "r", WorkflowType: "order"}}
	signal := func(id int64) schemas.Event { return schemas.Event{ID: id, Attributes: &schemas.Signal{}} }
	other := schemas.Event{ID: 1, Attributes: &schemas.WorkflowStarted{WorkflowID: "w", Run: "r", WorkflowType: "other"}}
	c := &checker{}
	if err := decider.Check(t.Context(), c, []schemas.Event{started, signal(2), signal(3)}); err != nil || c.seen != 3 {
		t.Errorf("got %v, %d events", err, c.seen)
	}
	for name, h := range map[string][]schemas.Event{
		"none": nil, "no beginning": {signal(1)}, "gap": {started, signal(3)},
	} {
		if err := decider.Check(t.Context(), c, h); !errors.Is(err, decider.ErrInvalidTask) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := decider.Check(t.Context(), c, []schemas.Event{other}); err == nil {
		t.Error("a panic is no error")
	}
	if err := decider.Check(t.Context(), c.Func, []schemas.Event{started}); !errors.Is(err, decider.ErrNoChecker) {
		t.Errorf("a raw decider: got %v", err)
	}
}

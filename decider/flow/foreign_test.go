package flow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/schemas"
	"pgregory.net/rapid"
)

// refs are the steps that a run of these steps may have recorded, blocks and handlers included, and the runs within not.
func refs(steps []*planned, prefix string) (all []string) {
	for i, p := range steps {
		ref := fmt.Sprint(prefix, i)
		all = append(all, ref)
		if p.tries > 0 {
			all = append(all, ref+".on-error.0")
		}
		if p.kind == "block" {
			all = append(all, refs(p.steps, ref+".steps.")...)
		}
	}
	return all
}

// A store that gives a run other steps than it began with, as one of somebody's own or a damaged bucket may, is refused before anything
// happens where the run does not fit them, with the step and the way out; it ends in no panic where it does.
func TestOtherStepsAreRefused(t *testing.T) {
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		h := newHouse(t)
		for n := rapid.IntRange(2, 40).Draw(t, "turns"); n > 0 || h.root.context == nil; n-- { // the root decides at last, however many answers are lost
			if !h.turn() {
				break
			}
		}
		root := h.root
		s, err := restore(root.context)
		if err != nil || s == nil {
			t.Fatalf("the root has left %q, %v, want what it has decided", root.context, err)
		}
		state, err := run.Decode(s.State)
		if err != nil {
			t.Fatal(err)
		}
		h.deploy()
		other := h.shelf.current
		h.shelf.all[s.Version] = h.shelf.all[other]
		h.restart()
		fits, have := true, refs(h.plans[other], "")
		for ref := range state.Records {
			fits = fits && slices.Contains(have, ref)
		}
		root.add(h, &schemas.Signal{SignalName: "noise"})
		started := root.add(h, &schemas.DeciderStarted{})
		task, err := decider.NewTask(schemas.DecisionTask{
			Namespace: "default", WorkflowID: "w", Run: root.id, Type: "flow", Attempt: 1, Context: root.context,
			PreviousStartedID: root.previous, StartedID: started, Events: root.events[root.previous:],
		})
		if err != nil {
			t.Fatal(err)
		}
		decisions, err := h.d.Decide(t.Context(), task)
		if err != nil && (len(decisions) > 0 || !bytes.Equal(task.Context(), root.context)) {
			t.Fatalf("a refusal decides %v and leaves %s", decisions, task.Context())
		}
		if fits {
			return
		}
		refused++
		if err == nil || !strings.Contains(err.Error(), "the run began with another version: have the store give it that one") {
			t.Fatalf("got %v, want a refusal of what began as\n%s\nand goes on as\n%s", err, planText(h.plans[h.version]), planText(h.plans[other]))
		}
		question := schemas.ReplayQuestion{From: "end", Force: true}
		if answer, err := h.d.Replay(t.Context(), task, question); err == nil || answer != nil {
			t.Fatalf("a replay is answered by %+v, %v, want a refusal", answer, err)
		}
	})
	if refused == 0 && !t.Failed() {
		t.Error("no draw was refused: the test has tested nothing")
	}
}

// A version that is gone is named, with what brings the run back.
func TestVersionThatIsGone(t *testing.T) {
	tp := record(t, "steps:\n- sleep 1s\n", "")
	tp.decide()
	task, err := decider.NewTask(schemas.DecisionTask{
		Namespace: "default", WorkflowID: "w", Run: "r", Type: "flow", Attempt: 1, Context: tp.context,
		PreviousStartedID: tp.previous, StartedID: tp.previous + 1,
		Events: []schemas.Event{{ID: tp.previous + 1, Attributes: &schemas.DeciderStarted{}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	other, err := Parse("flow", []byte("steps:\n- no-op\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := New(one{other}, nil).Decide(context.Background(), task)
	if !errors.Is(err, ErrNoDefinition) || !strings.Contains(err.Error(), "deploy that content again") || decisions != nil {
		t.Errorf("got %v, %v, want an error that says how the run goes on", decisions, err)
	}
}

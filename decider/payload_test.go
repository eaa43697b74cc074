package decider_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

func TestPayloadWithoutWorker(t *testing.T) {
	task, err := decider.NewTask(schemas.DecisionTask{WorkflowID: "w", Run: "r", StartedID: 1, Events: []schemas.Event{{ID: 1, Attributes: &schemas.DeciderStarted{}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []schemas.Payload{nil, schemas.Text("x"), schemas.Text(`{"$ref":{}}`)} {
		if got, err := task.Payload(t.Context(), p); err != nil || string(got) != string(p) {
			t.Fatalf("got %q, %v; want %q as it is", got, err, p)
		}
	}
	ref := schemas.RefPayload(&schemas.PayloadRef{Object: "o", Size: 1, Digest: strings.Repeat("0", 64)})
	if _, err := task.Payload(t.Context(), ref); !errors.Is(err, decider.ErrPayload) {
		t.Fatalf("got %v, want ErrPayload", err)
	}
}

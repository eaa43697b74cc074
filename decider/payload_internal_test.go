package decider

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// A decision whose payload could not be stored is no decision, and those beside it are not answered without it.
func TestSpillThatFails(t *testing.T) {
	client := payloads.NewClient(embeddedtest.Dial(t), subject.Namespace("default"), time.Millisecond)
	large := schemas.Text(strings.Repeat("x", schemas.PayloadThreshold+1))
	first, last := Complete(nil), Complete(large)
	task := &Task{payloads: client}
	for want, try := range map[string]func() ([]schemas.Decision, error){
		"decision 2, CompleteWorkflow": func() ([]schemas.Decision, error) { return task.spill(t.Context(), []schemas.Decision{first, last}) },
		"context: ": func() ([]schemas.Decision, error) {
			return (&Task{payloads: client, context: large}).spill(t.Context(), []schemas.Decision{first})
		},
	} {
		if got, err := try(); got != nil || !errors.Is(err, ErrPayload) || !errors.Is(err, natsconn.ErrNoResponders) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v; want %v of %s", got, err, natsconn.ErrNoResponders, want)
		}
	}
	if got, err := task.spill(t.Context(), []schemas.Decision{first}); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v; want a decision that has nothing to store as it is", got, err)
	}
}

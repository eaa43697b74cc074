package decider

import (
	"context"
	"errors"
	"fmt"
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

// A page of history that cannot be read is no page without events, and is asked for once.
func TestPageThatCannotBeRead(t *testing.T) {
	conn, asked := embeddedtest.Dial(t), 0
	sub, err := conn.Subscribe(subject.Namespace("default").API("history"), "", func(m natsconn.Msg) {
		asked++
		_ = m.Respond(nil, []byte("\x01what"))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	events, more, _, err := apiPager(conn, subject.Namespace("default"))(t.Context(), &schemas.DecisionTask{WorkflowID: "w", Run: "r"}, 0, 1)
	if !errors.Is(err, ErrHistory) || events != nil || more || asked != 1 {
		t.Errorf("got %v, more %t, %v after %d requests; want %v after one", events, more, err, asked, ErrHistory)
	}
}

func TestTransient(t *testing.T) {
	for err, want := range map[error]bool{
		&schemas.Error{Code: schemas.CodeUnavailable}: true, &schemas.Error{Code: schemas.CodeTimeout}: true, &schemas.Error{Code: schemas.CodeNotFound}: false,
		natsconn.ErrNoResponders: true, natsconn.ErrTimeout: true, natsconn.ErrDisconnected: true, natsconn.ErrClosed: false, context.Canceled: false,
		fmt.Errorf("%w: %w", natsconn.ErrPermission, natsconn.ErrTimeout): false,
	} {
		if got := transient(err); got != want {
			t.Errorf("%v: got %t, want %t", err, got, want)
		}
	}
}

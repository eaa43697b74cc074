package history

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

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
	events, more, _, err := FromAPI(conn, subject.Namespace("default"))(t.Context(), &schemas.DecisionTask{WorkflowID: "w", Run: "r"}, 0, 1)
	if !errors.Is(err, Err) || events != nil || more || asked != 1 {
		t.Errorf("got %v, more %t, %v after %d requests; want %v after one", events, more, err, asked, Err)
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

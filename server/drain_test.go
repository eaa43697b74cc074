package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

// While what runs finishes, others see that the node drains; the limit is the operator's if he gave one. What is cut short keeps
// its record.
func TestS2_01DrainingIsShown(t *testing.T) {
	url, o := bare(t)
	hurry := make(chan struct{})
	o.Logger, _ = listening()
	o.Node, o.Hurry = "n", hurry
	n, ctx := newNode(t.Context(), o)
	if err := n.open(ctx); err != nil {
		t.Fatal(err)
	}
	if got := n.drainLimit(); got != 5*time.Minute {
		t.Fatalf("got a limit of %v, want that of S2-1", got)
	}
	finish, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- n.supervise(ctx, map[string]runner{"busy": runnerFunc(func(context.Context) error { <-finish; return nil })})
	}()
	if status, err := n.obey(schemas.Control{Kind: schemas.ControlDrain, Timeout: schemas.Seconds(3600)}); status != schemas.NodeDraining || err != nil {
		t.Fatalf("got %s, %v", status, err)
	}
	r := registry(t, dialed(t, url))
	poll.Until(t, 20*time.Second, "draining", func() bool { return statusOf(t, r, "n") == schemas.NodeDraining })
	if got := n.drainLimit(); got != time.Hour {
		t.Fatalf("got a limit of %v, want the operator's", got)
	}
	close(hurry)
	err := <-ended
	if !errors.Is(err, ErrCutShort) {
		t.Fatalf("got %v, want %v", err, ErrCutShort)
	}
	n.failed = true
	n.close()
	close(finish)
	if got := statusOf(t, r, "n"); got != schemas.NodeDraining {
		t.Fatalf("got %q, want the record of a node that did not end properly", got)
	}
}

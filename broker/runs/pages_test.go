package runs

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// Any replica may answer a read of a history, and one that lags does not show what its owner has had acknowledged. A page
// is not the last one, and a history has not ended, before it shows that. Here the record comes late instead.
func TestPageOfAReplicaThatLags(t *testing.T) {
	r := namespace(t, 1)
	commit := func(first int64) {
		t.Helper()
		body := encoded(t, &schemas.Record{WorkflowID: "w", Run: "r", First: first, Events: []schemas.Event{
			{ID: first, Attributes: &schemas.WorkflowPaused{Reason: "test"}},
		}})
		put(t, r, 0, "w", "r", natsconn.Header{schemas.StatusHeader: {"open"}}, body)
	}
	commit(1)
	ctx, cancel := context.WithTimeout(t.Context(), 5*lagPause)
	defer cancel()
	if events, _, err := r.Events(ctx, 0, "w", "r", Span{Least: 2, Limit: 100}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %d events and %v, want none while event 2 cannot be seen", len(events), err)
	}
	read := make(chan error, 1)
	go func() {
		events, more, err := r.Events(t.Context(), 0, "w", "r", Span{Least: 2, Limit: 100})
		if err == nil && (more || len(events) != 2) {
			err = fmt.Errorf("got %d events (more %v), want both", len(events), more)
		}
		read <- err
	}()
	commit(2)
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	if last, err := r.lastEvent(t.Context(), 0, "w", "r"); err != nil || last.event != 2 {
		t.Fatalf("got last event %+v and %v, want 2", last, err)
	}
	if last, err := r.lastEvent(t.Context(), 0, "w", "none"); err != nil || last != (place{}) {
		t.Fatalf("got last event %+v and %v of a run that is not there, want 0", last, err)
	}
}

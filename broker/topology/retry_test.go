package topology

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/internal/virtual"
)

// A try that is cut off by the end of the time says nothing but that: what the server said before is what the caller needs.
func TestCutTryHidesNothing(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		tries := 0
		err := (&work{}).retry(ctx, func(ctx context.Context) error {
			if tries++; tries == 1 {
				return &jetstream.APIError{ErrorCode: codeUnavailable}
			}
			<-ctx.Done()
			return ctx.Err()
		})
		said, ok := errors.AsType[*jetstream.APIError](err)
		if !ok || said.ErrorCode != codeUnavailable || !errors.Is(err, context.DeadlineExceeded) || tries < 2 {
			t.Fatalf("got %v after %d tries, want what the server said, and that the time is over", err, tries)
		}
	})
}

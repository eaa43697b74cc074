package topology

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/internal/virtual"
)

// A try that has ended with its caller's time says so once; what kept the tries before stands beside the end.
func TestRetryTellsOnce(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error // of each try; nil waits for its end
		want string
	}{
		{"silence", nil, "context deadline exceeded"},
		{"refusals", nats.ErrNoResponders, "context deadline exceeded; the last try: nats: no responders available for request"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := new(work).retry(ctx, func(ctx context.Context) error {
					if tc.err == nil {
						<-ctx.Done()
						return ctx.Err()
					}
					return tc.err
				})
				if !errors.Is(err, context.DeadlineExceeded) || err.Error() != tc.want {
					t.Errorf("got %v, want %s", err, tc.want)
				}
			})
		})
	}
}

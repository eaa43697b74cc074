// Package sleep waits between one try and the next.
package sleep

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends, whose cause it then returns. Nothing and less is no wait, but
// a look at ctx.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

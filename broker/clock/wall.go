package clock

import (
	"context"
	"time"

	"github.com/droverhq/drover/internal/pause"
)

const (
	// wallEvery is how often the wall clock is looked at.
	wallEvery = 2 * time.Second
	// wallStep is more than a clock is slewed by in that time.
	wallStep = 100 * time.Millisecond
)

// Wall tells when the wall clock of this machine has gone another way than the monotonic one: it was set, or the machine was suspended. A
// [Server] does not notice, and is behind by the time that the machine stood still; where the server is on the same machine its clock was
// set too. So whoever asks it for its time does so at once then. The zero value is ready.
type Wall struct {
	first struct{ mono, wall time.Time } // one moment
	ahead time.Duration
}

// Stepped tells whether it has since it was asked before.
func (w *Wall) Stepped(now time.Time) bool {
	if w.first.mono.IsZero() {
		w.first.mono, w.first.wall = now, now.Round(0)
		return false
	}
	ahead := now.Round(0).Sub(w.first.wall) - now.Sub(w.first.mono)
	by := ahead - w.ahead
	w.ahead = ahead
	return by.Abs() >= wallStep
}

// Wait returns when d has passed or, within some seconds, when the clock has stepped. Its error is that of ctx.
func (w *Wall) Wait(ctx context.Context, d time.Duration) error {
	w.Stepped(time.Now())
	for ; d > 0; d -= wallEvery {
		if err := pause.For(ctx, min(d, wallEvery)); err != nil {
			return err
		}
		if w.Stepped(time.Now()) {
			return nil
		}
	}
	return nil
}

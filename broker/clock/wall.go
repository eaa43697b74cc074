package clock

import (
	"context"
	"time"

	"github.com/droverhq/drover/internal/sleep"
)

const (
	// wallEvery is how often the wall clock is looked at.
	wallEvery = 2 * time.Second
	// calm is how long a doubt must wait after an answer: hundreds may come at a time.
	calm = 500 * time.Millisecond
	// wallStep is more than a clock is slewed by in that time.
	wallStep = 100 * time.Millisecond
)

// Pace is one moment by both clocks of this machine. The monotonic one, by which [Server] counts,
// stands still while the machine is suspended, and is not set.
type Pace struct{ Mono, Wall time.Time }

// PaceOf takes a moment of [time.Now].
func PaceOf(now time.Time) Pace { return Pace{now, now.Round(0)} }

// Ahead is by how much more the wall clock has gone on since.
func (p Pace) Ahead(now time.Time) time.Duration {
	return now.Round(0).Sub(p.Wall) - now.Sub(p.Mono)
}

// Wall tells when the wall clock of this machine has gone another way than the monotonic one: it
// was set, or the machine was suspended. A [Server] does not notice, and lags by the time that the
// machine stood still; where the server is on the same machine its clock was set too. So whoever
// asks it for its time does so at once then. The zero value is ready.
type Wall struct {
	first Pace
	ahead time.Duration
}

// Stepped tells whether it has since it was asked before.
func (w *Wall) Stepped(now time.Time) bool {
	if w.first.Mono.IsZero() {
		w.first = PaceOf(now)
		return false
	}
	ahead := w.first.Ahead(now)
	by := ahead - w.ahead
	w.ahead = ahead
	return by.Abs() >= wallStep
}

// Wait returns when d has passed, soon after a word of doubt, or, within some seconds, when the
// clock has stepped. Its error is that of ctx.
func (w *Wall) Wait(ctx context.Context, d time.Duration, doubt <-chan struct{}) error {
	w.Stepped(time.Now())
	if err := sleep.For(ctx, min(d, calm)); err != nil {
		return err
	}
	for d -= calm; d > 0; d -= wallEvery {
		t := time.NewTimer(min(d, wallEvery))
		select {
		case <-t.C:
		case <-doubt:
			t.Stop()
			return nil
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
		if w.Stepped(time.Now()) {
			return nil
		}
	}
	return nil
}

package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/broker/clock"
)

// TestWallStep has one that does not.
func TestWallThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w clock.Wall
		began := time.Now()
		for _, d := range []time.Duration{0, time.Second, 15 * time.Second, time.Minute} {
			if err := w.Wait(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			if w.Stepped(time.Now()) {
				t.Error("the clock has not stepped")
			}
		}
		if took := time.Since(began); took != 76*time.Second {
			t.Errorf("it waited for %v, want 76 s", took)
		}
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(enough) })
		if err := w.Wait(ctx, time.Minute); !errors.Is(err, enough) {
			t.Errorf("got %v, want %v", err, enough)
		}
	})
}

package clock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/clock"
	"github.com/droverhq/drover/internal/virtual"
)

// TestWallStep has one that does not.
func TestWallThatGoesOn(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		var w clock.Wall
		began := time.Now()
		for _, d := range []time.Duration{0, time.Second, 15 * time.Second, time.Minute} {
			if err := w.Wait(t.Context(), d, nil); err != nil {
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
		if err := w.Wait(ctx, time.Minute, nil); !errors.Is(err, enough) {
			t.Errorf("got %v, want %v", err, enough)
		}
	})
}

// TestWallInDoubt has words of doubt: in a while, and one right after the last answer.
func TestWallInDoubt(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		var w clock.Wall
		doubt := make(chan struct{}, 1)
		for after, want := range map[time.Duration]time.Duration{0: time.Second / 2, 3 * time.Second: 3 * time.Second} {
			began := time.Now()
			time.AfterFunc(after, func() { doubt <- struct{}{} })
			if err := w.Wait(t.Context(), time.Minute, doubt); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("with doubts after %v it waited for %v, want %v", after, took, want)
			}
		}
	})
}

package breath_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/ops/breath"
)

// A look rests four times as long as it reads, and never for long at a time.
func TestBreath(t *testing.T) {
	for name, c := range map[string]struct {
		size int           // of a message
		read time.Duration // for each
		n    int
		rest time.Duration // in all
	}{
		"few":                      {size: 0, read: time.Microsecond, n: 1023, rest: 0},
		"many":                     {size: 0, read: time.Microsecond, n: 10 * 1024, rest: 4 * 10 * 1024 * time.Microsecond},
		"large":                    {size: 512 << 10, read: time.Millisecond, n: 20, rest: 4 * 20 * time.Millisecond},
		"slow, rests are not long": {size: 1 << 20, read: time.Second, n: 5, rest: 5 * 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var b breath.Breath
				for range c.n {
					if err := b.After(t.Context(), c.size); err != nil {
						t.Fatal(err)
					}
					time.Sleep(c.read)
				}
				// What was read since the last rest asks for none yet, and the first message counts from when it was there.
				got, slack := time.Since(began)-time.Duration(c.n)*c.read, 4*c.read*2
				if got > c.rest || got < c.rest-slack && c.rest > 0 {
					t.Fatalf("rested %v, want %v", got, c.rest)
				}
			})
		})
	}
}

func TestBreathEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		var b breath.Breath
		if err := b.After(ctx, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		cancel(gone)
		if err := b.After(ctx, 1<<20); !errors.Is(err, gone) {
			t.Fatalf("got %v, want %v", err, gone)
		}
	})
}

package sleep_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/internal/virtual"
)

func TestFor(t *testing.T) {
	enough := errors.New("enough")
	for name, tc := range map[string]struct {
		d, ends time.Duration // when ctx ends; 0: before, less: never
		want    error
		took    time.Duration
	}{
		"its time":             {d: time.Second, ends: -1, took: time.Second},
		"cut short":            {d: time.Second, ends: time.Millisecond, want: enough, took: time.Millisecond},
		"not begun":            {d: time.Second, want: enough},
		"nothing":              {ends: -1},
		"less than nothing":    {d: -time.Second, ends: -1},
		"nothing, and not on":  {want: enough},
		"negative, and not on": {d: -time.Second, want: enough},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tc.ends == 0 {
					cancel(enough)
				} else if tc.ends > 0 {
					time.AfterFunc(tc.ends, func() { cancel(enough) })
				}
				began := time.Now()
				if got := sleep.For(ctx, tc.d); got != tc.want || time.Since(began) != tc.took {
					t.Errorf("got %v after %v, want %v after %v", got, time.Since(began), tc.want, tc.took)
				}
			})
		})
	}
}

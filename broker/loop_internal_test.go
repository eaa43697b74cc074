package broker

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
)

// Timers run in the order of their times, but those that were canceled, and a canceled one is forgotten at once: each answered
// long poll has one that would hold its run in memory for seconds.
func TestTimersOfTheLoop(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		l := newLoop()
		ctx, stop := context.WithCancel(t.Context())
		var got []int
		var all []*timer
		for _, n := range []int{5, 1, 4, 2, 3, 6} {
			all = append(all, l.after(time.Duration(n)*time.Second, func() { got = append(got, n) }))
		}
		l.cancel(all[2])                                            // 4
		l.cancel(all[5])                                            // 6
		l.after(1500*time.Millisecond, func() { l.cancel(all[3]) }) // 2
		l.after(2500*time.Millisecond, func() {
			l.cancel(all[1]) // has run
			l.cancel(all[2]) // was canceled
		})
		if len(l.timers) != 6 {
			t.Errorf("%d timers are kept, want 6", len(l.timers))
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.run(ctx, func() {})
		}()
		time.Sleep(10 * time.Second)
		stop()
		<-done
		if want := []int{1, 3, 5}; !slices.Equal(got, want) {
			t.Errorf("ran %v, want %v", got, want)
		}
		if len(l.timers) != 0 {
			t.Errorf("%d timers are left", len(l.timers))
		}
	})
}

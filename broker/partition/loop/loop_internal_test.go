package loop

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
)

// Timers run in the order of their times, but those that were canceled, and a canceled one is forgotten at once: each answered
// long poll has one that would hold its run in memory for seconds.
func TestTimersOfTheLoop(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		l := New()
		ctx, stop := context.WithCancel(t.Context())
		var got []int
		var all []*Timer
		for _, n := range []int{5, 1, 4, 2, 3, 6} {
			all = append(all, l.After(time.Duration(n)*time.Second, func() { got = append(got, n) }))
		}
		l.Cancel(all[2])                                            // 4
		l.Cancel(all[5])                                            // 6
		l.After(1500*time.Millisecond, func() { l.Cancel(all[3]) }) // 2
		l.After(2500*time.Millisecond, func() {
			l.Cancel(all[1]) // has run
			l.Cancel(all[2]) // was canceled
		})
		if len(l.timers) != 6 {
			t.Errorf("%d timers are kept, want 6", len(l.timers))
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.Run(ctx, func() {})
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

// Each timer runs at its time, whatever else is queued, canceled and set meanwhile, and however long nothing was.
func TestTimersOfTheLoopAreOnTime(t *testing.T) {
	for seed := range uint64(20) {
		virtual.Run(t, func(t *testing.T) {
			l := New()
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				l.Run(ctx, func() {})
			}()
			random := rand.New(rand.NewPCG(seed, 0))
			set, ran, canceled := 0, 0, 0
			var some []*Timer
			for range 200 {
				wait := time.Duration(random.Int64N(int64(3 * time.Hour)))
				if random.IntN(2) == 0 {
					wait /= 10_000 // within a second or so
				}
				cancels, which := random.IntN(3) == 0, random.Int()
				l.Post(func() {
					due := time.Now().Add(wait)
					set++
					some = append(some, l.After(wait, func() {
						if ran++; !time.Now().Equal(due) {
							t.Errorf("a timer ran %v late", time.Since(due))
						}
					}))
					if tm := some[which%len(some)]; cancels && tm.place > 0 {
						canceled++
						l.Cancel(tm)
					}
				})
				time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
			}
			time.Sleep(4 * time.Hour)
			stop()
			<-done
			if ran+canceled != set || canceled == 0 {
				t.Errorf("of %d timers %d ran and %d were canceled", set, ran, canceled)
			}
		})
	}
}

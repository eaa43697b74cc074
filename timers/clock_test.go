package timers_test

import (
	"fmt"
	"testing"
	"time"
)

func TestWrongLocalClock(t *testing.T) {
	for _, skew := range []time.Duration{-10 * time.Minute, 10 * time.Minute, 1000 * time.Hour} {
		t.Run(fmt.Sprintf("P-15/local clock off by %v", skew), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				old := r.arm("old", time.Now().Add(2*time.Hour+25*time.Minute))
				old2 := time.Now().Add(2*time.Hour + 25*time.Minute)
				time.Sleep(2 * time.Hour) // its timestamp tells little of the server's clock
				w, _ := r.worker("n1")
				w.SetClock(func() time.Time { return time.Now().Add(skew) })
				r.start(w)
				time.Sleep(time.Second)
				for _, after := range []time.Duration{time.Millisecond, time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute} {
					r.expectOne("w", time.Now().Add(after))
				}
				r.expect("old", old2, old)
				r.quiet(2 * time.Minute)
			})
		})
	}
}

// TestClockIsUnknownAtFirst has no history to ask for the time, and only an old alarm.
func TestClockIsUnknownAtFirst(t *testing.T) {
	t.Run("P-15", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			js := r.conn.JetStream()
			s, err := js.Stream(t.Context(), ns.StreamHistory(0))
			if err != nil {
				t.Fatal(err)
			}
			cfg := s.CachedInfo().Config
			if err := js.DeleteStream(t.Context(), ns.StreamHistory(0)); err != nil {
				t.Fatal(err)
			}
			due := time.Now().Add(time.Hour)
			seq := r.arm("w", due)
			w, _ := r.worker("n1")
			w.SetClock(func() time.Time { return time.Now().Add(24 * time.Hour) })
			time.Sleep(10 * time.Minute)
			r.start(w)
			time.Sleep(time.Minute)
			if _, err := js.CreateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			r.expect("w", due, seq)
		})
	})
}

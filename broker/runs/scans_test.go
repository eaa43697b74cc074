package runs

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
)

// E13: of a thousand requests at once a few are served at a time. The queue is bounded; an asker with one
// request waits for no more than what is being served, and gets a place in a full queue.
func TestScansTakeTurns(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		var s Scans
		var mu sync.Mutex
		now, most, served, refused := 0, 0, 0, 0
		var other time.Time
		began := time.Now()
		enter := func(asker string, then func()) {
			s.Enter(asker, func(done func()) {
				mu.Lock()
				now, served = now+1, served+1
				most = max(most, now)
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
				mu.Lock()
				now--
				mu.Unlock()
				then()
				done()
			}, func() {
				mu.Lock()
				defer mu.Unlock()
				refused++
			})
		}
		for range 1000 {
			enter("flood", func() {})
		}
		enter("one", func() {
			mu.Lock()
			defer mu.Unlock()
			other = time.Now()
		})
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if most > mostScans || now != 0 || served+refused != 1001 || served < mostWaiting {
			t.Errorf("%d at a time, %d served, %d refused: want at most %d, and all answered", most, served, refused, mostScans)
		}
		if other.IsZero() || other.Sub(began) > time.Second {
			t.Errorf("the other asker was served after %v, want it next", other.Sub(began))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.serving != 0 || s.waiting != 0 || len(s.queues) != 0 || len(s.askers) != 0 {
			t.Errorf("left: %d served, %d wait, %d queues, %d askers", s.serving, s.waiting, len(s.queues), len(s.askers))
		}
	})
}

// E13: what has waited for longer than anybody listens is not served any more.
func TestScansForgetTheLate(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		var s Scans
		var mu sync.Mutex
		served, refused := 0, 0
		for i := range 2 * mostScans {
			s.Enter(fmt.Sprint(i), func(done func()) {
				mu.Lock()
				served++
				mu.Unlock()
				time.Sleep(2 * longestTurn)
				done()
			}, func() {
				mu.Lock()
				defer mu.Unlock()
				refused++
			})
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if served != mostScans || refused != mostScans {
			t.Errorf("%d served and %d refused, want %d each", served, refused, mostScans)
		}
	})
}

//go:build linux

package prompt_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/prompt"
)

func newTimer(t testing.TB) (*prompt.Timer, chan time.Time) {
	t.Helper()
	woken := make(chan time.Time, 64)
	p, err := prompt.New(func() { woken <- time.Now() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, woken
}

// What is over wakes once for each time that it was set, and never before.
func TestWakesWhenItIsOver(t *testing.T) {
	p, woken := newTimer(t)
	for _, d := range []time.Duration{3 * time.Millisecond, time.Nanosecond, 0, -time.Hour, 2 * time.Millisecond} {
		began := time.Now()
		p.Reset(d)
		if took := (<-woken).Sub(began); took < d {
			t.Fatalf("woken %v behind the moment that it was set, want %v or more", took, d)
		}
	}
	if len(woken) > 0 {
		t.Errorf("woken %d times more, want once for each", len(woken))
	}
}

// swiftly sets a timer so that it takes less than d, and tells when it began: a machine that stands still in between proves nothing.
func swiftly(t *testing.T, d time.Duration, set func(*prompt.Timer)) (woken chan time.Time, began time.Time) {
	t.Helper()
	for {
		p, woken := newTimer(t) // what a try before has set may wake late
		began := time.Now()
		if set(p); time.Since(began) < d {
			return woken, began
		}
	}
}

// Only what was set last wakes.
func TestResetReplaces(t *testing.T) {
	const early, late = 5 * time.Millisecond, 10 * time.Millisecond
	p, woken := newTimer(t)
	p.Reset(time.Hour)
	p.Reset(early) // or the test waits for an hour
	<-woken
	woken, began := swiftly(t, early, func(p *prompt.Timer) { p.Reset(early); p.Reset(late) })
	if took := (<-woken).Sub(began); took < late {
		t.Errorf("woken behind %v, want %v or more: what was replaced has woken", took, late)
	}
}

// What was stopped does not wake: another timer, which was to be over later, is over.
func TestStopTakesBack(t *testing.T) {
	const early, late = 5 * time.Millisecond, 10 * time.Millisecond
	other, later := newTimer(t)
	woken, _ := swiftly(t, early, func(p *prompt.Timer) { p.Reset(early); p.Stop() })
	other.Reset(late)
	<-later
	if len(woken) > 0 {
		t.Error("woken by what was stopped")
	}
}

// Who has closed a timer is not called any more, whatever was set.
func TestClosedWakesNobody(t *testing.T) {
	for range 100 {
		closed := false
		p, err := prompt.New(func() {
			if closed {
				t.Error("woken by a timer that is closed") // and the race detector would tell
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		p.Reset(20 * time.Microsecond)
		p.Close()
		closed = true
		p.Reset(time.Nanosecond) // of no file
		p.Stop()
	}
}

// Where there is none everything works without one.
func TestNoneWakesNobody(*testing.T) {
	var p *prompt.Timer
	p.Reset(time.Nanosecond)
	p.Stop()
	p.Close()
}

// BenchmarkLate tells how late a wait of a millisecond ends while garbage is collected all the time and nothing else is to be done, by a timer of Go's and by one
// of the kernel.
func BenchmarkLate(b *testing.B) {
	type node struct{ left, right *node }
	alive := make([]*node, 1<<20)
	for i := range alive {
		alive[i] = &node{left: alive[i/2], right: alive[i/3]}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			default:
				runtime.GC()
			}
		}
	}()
	defer func() { close(over); <-ended; runtime.KeepAlive(alive) }()
	late := func(b *testing.B, wait func()) {
		all := make([]time.Duration, b.N)
		for i := range all {
			began := time.Now()
			wait()
			all[i] = time.Since(began) - time.Millisecond
		}
		slices.Sort(all)
		for _, percent := range []int{50, 99} {
			b.ReportMetric(float64(all[(len(all)-1)*percent/100])/1e6, fmt.Sprintf("p%d-late-ms", percent))
		}
	}
	b.Run("Go", func(b *testing.B) {
		timer := time.NewTimer(time.Hour)
		late(b, func() { timer.Reset(time.Millisecond); <-timer.C })
	})
	b.Run("kernel", func(b *testing.B) {
		p, woken := newTimer(b)
		late(b, func() { p.Reset(time.Millisecond); <-woken })
	})
}

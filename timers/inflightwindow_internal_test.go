package timers

import (
	"testing"
	"time"
)

// storm sends rings through a window for a while: each message takes answer(rings in hand, how many were answered before), and
// there are always more that are due. It tells the window's size in the end and how many rings were answered.
func storm(w *inFlightWindow, d time.Duration, answer func(flying, nth int) time.Duration) (size, answered int) {
	type message struct {
		sent, back time.Time
		n          int
	}
	began := time.Unix(1000, 0)
	now, flying := began, 0
	var way []message
	for now.Sub(began) < d {
		for w.most() > flying {
			n := min(handful, w.most()-flying)
			flying += n
			way = append(way, message{now, now.Add(answer(flying, answered)), n})
		}
		first := 0
		for i := range way {
			if way[i].back.Before(way[first].back) {
				first = i
			}
		}
		m := way[first]
		way = append(way[:first], way[first+1:]...)
		now = m.back
		w.answered(m.sent, now, m.n, flying >= w.most())
		flying -= m.n
		answered += m.n
	}
	return w.most(), answered
}

// The owner has in hand what it gets done in a moment, neither less nor much more.
func TestWindow(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name        string
		answer      func(flying, nth int) time.Duration
		least, most int // the size in the end
		rate        int // rings a second, at least
	}{
		{"quick", func(int, int) time.Duration { return 3 * ms }, mostDirect, mostDirect, 100_000},
		{"2,500 a second", func(flying, _ int) time.Duration { return max(3*ms, time.Duration(flying)*400*time.Microsecond) }, 150, 300, 2_000},
		{"10,000 a second", func(flying, _ int) time.Duration { return max(3*ms, time.Duration(flying)*100*time.Microsecond) }, 100, 300, 9_000},
		{"200 a second", func(flying, _ int) time.Duration { return max(3*ms, time.Duration(flying)*5*ms) }, fewDirect, 256, 150},
		{"a slow disk", func(int, int) time.Duration { return 50 * ms }, mostDirect, mostDirect, 5_000},
		{"one in 64 waits for its decider", func(_, nth int) time.Duration {
			if nth/64%64 == 0 {
				return 100 * ms
			}
			return 3 * ms
		}, 128, mostDirect, 10_000},
	} {
		w := newInFlightWindow()
		size, answered := storm(&w, 10*time.Second, tc.answer)
		if size < tc.least || size > tc.most || answered < 10*tc.rate {
			t.Errorf("%s: got a window of %d and %d rings in 10 s, want %d to %d and at least %d", tc.name, size, answered, tc.least, tc.most, 10*tc.rate)
		}
	}
}

// A window that has shrunk grows again when answers are quick, and not while nothing waits for it.
func TestWindowGrowsAgain(t *testing.T) {
	w := newInFlightWindow()
	storm(&w, time.Second, func(int, int) time.Duration { return 3 * time.Millisecond })
	storm(&w, 5*time.Second, func(flying, _ int) time.Duration { return time.Duration(flying) * time.Millisecond })
	if got := w.most(); got > 2*fewDirect {
		t.Fatalf("under load: got %d, want at most %d", got, 2*fewDirect)
	}
	now := time.Unix(5000, 0)
	for range 1000 {
		w.answered(now, now.Add(time.Millisecond), 10, false)
	}
	if got := w.most(); got > 2*fewDirect {
		t.Fatalf("without need: got %d, want at most %d", got, 2*fewDirect)
	}
	if got, _ := storm(&w, 5*time.Second, func(int, int) time.Duration { return 3 * time.Millisecond }); got != mostDirect {
		t.Fatalf("after it: got %d, want %d", got, mostDirect)
	}
}

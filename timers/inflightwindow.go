package timers

import "time"

const (
	// fewDirect and mostDirect bound the rings that the owner has in hand.
	fewDirect, mostDirect = 64, 2048
	// soonAnswered is an answer that came in good time whatever the quickest takes: half as long as
	// records wait for decisions (ADR 0020).
	soonAnswered = 10 * time.Millisecond
	// pacedBy is how many answers make the mean of what they took.
	pacedBy = 64
	// bestLasts is how long it takes until the quickest answer counts as twice as slow.
	bestLasts = 5 * time.Minute
)

// inFlightWindow is how many rings the owner may have in hand. What is due beyond waits in the
// worker, where it costs nothing. If the owner has more than it gets done at once, each of them
// waits for the others at every step: records no longer wait for the decisions that they cause, and
// become two (ADR 0020), runs stay in memory for longer, and in the end rings are taken for lost
// and go through the inbox as well. So the window follows how long answers take: it shrinks while
// the mean is above twice the quickest, and grows else.
//
// A decider that is slow makes few answers slow: records of its type soon wait for nothing. A disk
// that is slow makes all of them slow, the quickest too. That is forgotten slowly, since under load
// what was waited for in line looks like it.
type inFlightWindow struct {
	size  float64
	mean  time.Duration
	best  time.Duration // the quickest
	moved time.Time     // when the window shrank
	heard time.Time     // the latest answer
}

func newInFlightWindow() inFlightWindow { return inFlightWindow{size: fewDirect} }

// most is how many rings the owner may have in hand.
func (w *inFlightWindow) most() int { return int(w.size) }

// answered takes the outcome of n rings that were sent together; full says that others wait for the
// window.
func (w *inFlightWindow) answered(sent, now time.Time, n int, full bool) {
	took := max(now.Sub(sent), time.Microsecond)
	if w.best == 0 {
		w.best, w.mean = took, took
	}
	n = min(n, pacedBy)
	w.mean += (took - w.mean) * time.Duration(n) / pacedBy
	if past := now.Sub(w.heard); past > 0 && !w.heard.IsZero() {
		w.best += time.Duration(float64(w.best) * min(float64(past)/float64(bestLasts), 1))
	}
	w.best, w.heard = min(w.best, took), now
	limit := max(soonAnswered, 2*w.best)
	switch {
	case w.mean <= limit:
		if full {
			w.size = min(w.size+float64(n)/2, mostDirect)
		}
	case sent.After(w.moved): // what was sent before says nothing of the window as it is
		w.size = max(w.size*max(0.5, float64(limit)/float64(w.mean)), fewDirect)
		w.moved = now
	}
}

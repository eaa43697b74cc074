package lean

import (
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	// readyMost is how much may be alive in a process that is made ready: a collection of more takes longer than the work is away.
	readyMost = 256 << 20
	// readyPiece is how much memory is taken at a time.
	readyPiece = 4 << 20
)

var eve readiness

// readiness is when the process may be made ready for work.
type readiness struct {
	mu       sync.Mutex
	notAgain time.Time // before then
}

// Ready makes the process ready for much work that begins in some hundred milliseconds, while it has little to do; it returns at once. What has
// rested has given its memory back, and would take it again page by page while everybody waits, and collect garbage within the first tenth of a
// second. So that much memory is taken now as the heap may grow by until its next collection, and garbage is collected now (ADR 0044).
//
// It does nothing soon behind the time before, by the rule of [Keep], where much is alive, and where GOGC or GOMEMLIMIT say how the heap
// grows. If the work does not come, Keep gives the memory back. It is safe for concurrent use.
func Ready() {
	if decided(os.Getenv) || !eve.begin(time.Now()) {
		return
	}
	go func() {
		began := time.Now()
		makeReady()
		eve.end(began, time.Now())
	}()
}

// begin tells whether the process may be made ready now; end must follow then.
func (r *readiness) begin(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.notAgain) {
		return false
	}
	r.notAgain = now.Add(mostGap) // until it is known how long it took
	return true
}

func (r *readiness) end(began, ended time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notAgain = began.Add(gap(ended.Sub(began)))
}

// makeReady takes memory, and collects garbage.
func makeReady() {
	m := Read()
	if m.Live > readyMost {
		return
	}
	grows := m.Live + uint64(len(ballast)) // the heap doubles
	take(grows - min(m.Free, grows))
	runtime.GC()
}

// take has the machine give memory to the heap: what is allocated, written to once in each page, and let go of stays there until Go gives it
// back, which takes seconds.
func take(bytes uint64) {
	page := os.Getpagesize()
	pieces := make([][]byte, 0, bytes/readyPiece)
	for range cap(pieces) {
		b := make([]byte, readyPiece)
		for i := 0; i < len(b); i += page {
			b[i] = 1
		}
		pieces = append(pieces, b)
	}
	runtime.KeepAlive(pieces) // each page is taken once, by different pieces
}

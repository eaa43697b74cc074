package lean

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// readyMost is how much may be alive in a process that is made ready: a collection of more takes longer than the work is away. It is also how
	// much garbage there may be between two collections while the work lasts. Both are readyShare of a container's memory at most.
	readyMost  = 256 << 20
	readyShare = 4
	// containerLimit is where Linux tells a container how much memory it may have, in bytes; "max" without a limit.
	containerLimit = "/sys/fs/cgroup/memory.max"
	// usualPercent is GOGC as Go has it, and loosePercent the most while much work is foretold: a collection takes a quarter of all cores for as
	// long as it lasts, and most of what is alive in a server lives for long (ADR 0045).
	usualPercent, loosePercent = 100, 300
	// looseFor is how long the latter holds at most behind the last word of more work.
	looseFor = 30 * time.Second
	// readyPiece is how much memory is taken at a time.
	readyPiece = 4 << 20
	// readyGap is how many times as long as it took must be behind before the process is made ready again.
	readyGap = 25
)

var eve = readiness{most: mostOf(containerLimit), read: Read}

// readiness makes the process ready for work, on one goroutine, which ends when no more work is foretold.
type readiness struct {
	told     atomic.Int64 // when more work was foretold last, Unix nanoseconds
	busy     atomic.Bool  // the goroutine is there
	notAgain time.Time    // before then no memory is taken; the goroutine's
	most     uint64       // readyMost, or less
	read     func() Reading
}

// Ready makes the process ready for much work that begins in some hundred milliseconds, while it has little to do; it returns at once. What has
// rested has given its memory back, and would take it again page by page while everybody waits, and collect garbage within the first tenth of a
// second. So that much memory is taken now as the heap may grow by until its next collection, and garbage is collected now (ADR 0044). And until
// the process has come to rest, for half a minute at most, there may be more garbage between two collections: three times as much as is alive,
// but 256 MB or a quarter of a container's memory at most (ADR 0045).
//
// Memory is not taken soon behind the time before, by the rule of [Keep]. Nothing is done where more than that is alive, and where GOGC or
// GOMEMLIMIT say how the heap grows. If the work does not come, Keep gives the memory back. It is safe for concurrent use.
func Ready() {
	if !decided(os.Getenv) {
		eve.tell()
	}
}

// tell takes the word of more work.
func (r *readiness) tell() {
	r.told.Store(time.Now().UnixNano())
	if r.busy.CompareAndSwap(false, true) {
		go r.run()
	}
}

func (r *readiness) run() {
	for {
		r.begin(time.Now())
		told := r.attend()
		debug.SetGCPercent(usualPercent)
		r.busy.Store(false)
		// Whoever has told meanwhile may have seen us busy.
		if r.told.Load() == told || !r.busy.CompareAndSwap(false, true) {
			return
		}
	}
}

// begin lets the heap grow, and takes memory for it if that is due.
func (r *readiness) begin(now time.Time) {
	m := r.read()
	grows := r.loosen(m)
	if m.Live > r.most || now.Before(r.notAgain) {
		return
	}
	take(grows - min(m.Free, grows))
	runtime.GC()
	r.notAgain = now.Add(gap(time.Since(now), readyGap))
}

// attend lets the heap grow while there is work, and returns the last word of it.
func (r *readiness) attend() (told int64) {
	looks := 0
	for allocs := r.read().Allocs; ; {
		told = r.told.Load()
		if looks == restLooks || time.Since(time.Unix(0, told)) > looseFor {
			return told
		}
		time.Sleep(lookEvery)
		m := r.read()
		if looks++; m.works(allocs) {
			looks = 0
		}
		allocs = m.Allocs
		r.loosen(m)
	}
}

// loosen lets the heap grow by more, and tells by how many bytes.
func (r *readiness) loosen(m Reading) uint64 {
	alive := m.Live + uint64(len(ballast))
	percent := min(max(r.most*100/max(alive, 1), usualPercent), loosePercent)
	debug.SetGCPercent(int(percent))
	return alive * percent / 100
}

// mostOf is readyMost, or less where a file like [containerLimit] says so.
func mostOf(file string) uint64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return readyMost
	}
	limit, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil { // "max"
		return readyMost
	}
	return min(limit/readyShare, readyMost)
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

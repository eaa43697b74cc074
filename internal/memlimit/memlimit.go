// Package memlimit gives memory back to the machine when a process that was busy has come to rest.
// Go itself waits until the heap has doubled, or two minutes have passed. Go also has the limit of
// a process's memory, GOMEMLIMIT; this package adds none.
//
// Invariants:
//   - It decides by what the runtime tells of its memory, which costs microseconds. A process is at
//     rest if it has allocated little at two looks in a row.
//   - At rest garbage is collected once, and at two later moments: the NATS server lets go of its
//     caches after ten seconds, and of its index of subjects by block after two minutes.
//   - A collection must have something to win: 8 MB, and a sixteenth of what is alive.
//   - A collection has 100 times as long as it took to itself, at least 14 seconds and at most a
//     minute.
//   - It is for the main function of a process, once: memory is that of all.
//
// While there is work, and little is alive, [Ballast] makes collections rarer.
//
// Considered: a lower GOGC. It costs time while there is work; this costs time when there is none.
package memlimit

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// lookEvery is how often the memory is looked at, and restLooks how many looks in a row must
	// find the process at rest.
	lookEvery = time.Second
	restLooks = 2
	// restAllocs and restShare are how much a process at rest allocates between two looks at most,
	// for checkpoints, claims and the audit: so many bytes, or this part of what is alive.
	restAllocs = 4 << 20
	restShare  = 8
	// A collection has gapShare times as long as it took to itself, within these bounds.
	leastGap = 14 * time.Second
	mostGap  = time.Minute
	gapShare = 100
	// worth and worthShare are what there must be to win: so many bytes, and this part of what is
	// alive.
	worth      = 8 << 20
	worthShare = 16
)

// later is when the collections of a rest follow its first.
var later = []time.Duration{14 * time.Second, 140 * time.Second}

// Reading is what the runtime tells of its memory, in bytes.
type Reading struct {
	Allocs    uint64 // ever allocated
	Footprint uint64 // of the machine
	Live      uint64 // found by the last collection
}

// Read reads the memory of this process, without the [Ballast].
func Read() Reading {
	s := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(s)
	total, released := s[1].Value.Uint64(), s[2].Value.Uint64()
	m := Reading{
		Allocs: s[0].Value.Uint64(), Footprint: total - released, Live: s[3].Value.Uint64(),
	}
	return m.without(uint64(len(ballast)))
}

// Collect collects garbage and gives what is free to the machine.
func Collect() {
	runtime.GC() // pools keep what they have for one collection
	debug.FreeOSMemory()
}

// Keep gives memory back whenever the process has come to rest, until ctx ends.
func Keep(ctx context.Context) { keep(ctx, Read, Collect) }

func keep(ctx context.Context, read func() Reading, collect func()) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var r rest
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if began := time.Now(); r.due(began, read()) {
			collect()
			r.collected(began, time.Now(), read())
		}
	}
}

// rest decides when to collect.
type rest struct {
	allocs uint64 // at the last look
	looks  int    // in a row that found it at rest
	// least is the smallest footprint since the last collection. It cannot shrink below that by
	// much, unless something is let go of.
	least  uint64
	next   time.Time // from when on there is time for a collection
	worked bool      // since the first collection of this rest
	// first is when that was; zero before it. moments is which of later comes next.
	first   time.Time
	moments int
}

// due tells whether to collect now.
func (r *rest) due(now time.Time, m Reading) bool {
	works := m.Allocs-r.allocs > max(restAllocs, m.Live/restShare)
	r.allocs, r.least = m.Allocs, min(r.least, m.Footprint)
	if works {
		r.looks, r.worked = 0, true
		return false
	}
	if r.looks++; r.looks < restLooks || now.Before(r.next) {
		return false
	}
	enough := worth + m.Live/worthShare
	grown := m.Footprint > r.least+enough
	switch {
	case grown && (r.worked || r.first.IsZero()):
		r.first, r.moments, r.worked = now, 0, false
		return true
	case r.laterIsDue(now):
		for r.laterIsDue(now) {
			r.moments++ // one that was put off stands for those that are due by now, too
		}
		return m.Footprint > m.Live+enough
	}
	return grown
}

// laterIsDue tells whether the next later moment of this rest is there.
func (r *rest) laterIsDue(now time.Time) bool {
	return r.moments < len(later) && !r.first.IsZero() && now.Sub(r.first) >= later[r.moments]
}

// collected takes what a collection has come to.
func (r *rest) collected(began, ended time.Time, m Reading) {
	r.allocs, r.least = m.Allocs, m.Footprint
	r.next = began.Add(min(max(leastGap, gapShare*ended.Sub(began)), mostGap))
}

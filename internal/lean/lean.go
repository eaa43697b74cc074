// Package lean gives memory back to the machine when a process that was busy has come to rest. Go itself waits until the heap has doubled,
// or two minutes have passed, and so a server that was busy and then sleeps would keep what it does not need.
//
// Invariants:
//   - It decides by what the runtime tells of its memory, which costs microseconds and stops nobody. It collects when little is allocated
//     for two looks in a row and the process has grown since the last time; and then at two later moments of the same rest, since what
//     others let go of by the clock is not seen before a collection: caches of the NATS server after ten seconds, its index of
//     subjects by block after two minutes.
//   - A collection must have something to win: more memory in use than what was alive at the last one, by 8 MB and a sixteenth.
//   - It takes a hundredth of the time, and mostly far less: on average a collection has 100 times as long as it took to itself, up to a minute,
//     and never less than 14 seconds. Behind work there are up to three in a row, since what has been let go of is most then, and of the time
//     before none was used. On a machine that is short of CPU a collection takes long because others work. What pools keep is seen to at the
//     moments of a rest, which takes a second collection; between them what the audit reads is collected by one.
//   - It is for the main function of a process, once: memory is that of all.
//
// While there is work, and little is alive, it does the opposite: [Ballast].
//
// Considered: a lower GOGC, or a limit of memory. Both cost time while there is work; this costs time when there is none.
package lean

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// lookEvery is how often the memory is looked at, and restLooks how many looks in a row must find the process at rest.
	lookEvery = time.Second
	restLooks = 2
	// restAllocs and restShare are how much a process at rest allocates between two looks at most, for checkpoints, claims and the audit:
	// so many bytes, or this part of what is alive. Go would not collect for eight seconds then.
	restAllocs = 4 << 20
	restShare  = 8
	// leastGap is how long a collection is behind the one before; in the long run it is gapShare times as long as one took, up to mostGap (ADR 0048).
	// So much of that may be saved up, while there was work, for those that follow it.
	leastGap = 14 * time.Second
	mostGap  = time.Minute
	gapShare = 100
	saved    = 2
	// worth and worthShare are what there must be to win: so many bytes, and this part of what is alive.
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
	m := Reading{Allocs: s[0].Value.Uint64(), Footprint: s[1].Value.Uint64() - s[2].Value.Uint64(), Live: s[3].Value.Uint64()}
	return m.without(uint64(len(ballast)))
}

// Collect collects garbage and gives what is free to the machine.
func Collect() {
	runtime.GC() // pools keep what they have for one collection
	collectAgain()
}

// collectAgain is [Collect] but for what pools keep, for half of the time.
func collectAgain() { debug.FreeOSMemory() }

// Options of [Keep]. The zero value of every field is its default.
type Options struct {
	// Read tells of the memory. Defaults to [Read].
	Read func() Reading
	// Collect makes it smaller, at the moments of a rest. Defaults to [Collect].
	Collect func()
	// CollectAgain does so where only the little that a process at rest allocates has come to be much. Defaults to
	// [Collect] but for what pools keep, which takes half of the time.
	CollectAgain func()
}

// Keep gives memory back whenever the process has come to rest, until ctx ends.
func Keep(ctx context.Context, o *Options) {
	if o == nil {
		o = &Options{}
	}
	read, collect, again := o.Read, o.Collect, o.CollectAgain
	if read == nil {
		read = Read
	}
	if collect == nil {
		collect = Collect
	}
	if again == nil {
		again = collectAgain
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var r rest
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		switch r.due(began, read()) {
		case no:
			continue
		case moment:
			collect()
		case trickle:
			again()
		}
		r.collected(began, time.Now(), read())
	}
}

// rest decides when to collect.
type rest struct {
	allocs uint64 // at the last look
	looks  int    // in a row that found it at rest
	// least is the smallest footprint since the last collection. It cannot shrink below that by much, unless something is let go of.
	least  uint64
	last   time.Time // when the last collection began
	next   time.Time // from when on there is time for one
	worked bool      // since the first collection
	// first is when this rest's first collection was; zero before it. moments is which of later comes next.
	first   time.Time
	moments int
}

// works tells whether a process does more than rest, by what it had allocated at the look before.
func (m Reading) works(allocs uint64) bool {
	return m.Allocs-allocs > max(restAllocs, m.Live/restShare)
}

// reason is why to collect.
type reason int

const (
	no      reason = iota
	moment         // a rest begins, or one of its later moments is there
	trickle        // what little a process at rest allocates has come to be much
)

// due tells whether to collect now.
func (r *rest) due(now time.Time, m Reading) reason {
	works := m.works(r.allocs)
	r.allocs, r.least = m.Allocs, min(r.least, m.Footprint)
	if works {
		r.looks, r.worked = 0, true
		return no
	}
	if r.looks++; r.looks < restLooks || now.Sub(r.last) < leastGap || now.Before(r.next) {
		return no
	}
	enough := worth + m.Live/worthShare
	grown := m.Footprint > r.least+enough
	switch {
	case grown && (r.worked || r.first.IsZero()):
		r.first, r.moments, r.worked = now, 0, false
		return moment
	case r.laterIsDue(now):
		for r.laterIsDue(now) {
			r.moments++ // one that was put off stands for those that are due by now, too
		}
		if m.Footprint > m.Live+enough {
			return moment
		}
		return no
	case grown:
		return trickle
	}
	return no
}

// laterIsDue tells whether the next later moment of this rest is there.
func (r *rest) laterIsDue(now time.Time) bool {
	return r.moments < len(later) && !r.first.IsZero() && now.Sub(r.first) >= later[r.moments]
}

// collected takes what a collection has come to.
func (r *rest) collected(began, ended time.Time, m Reading) {
	r.allocs, r.least = m.Allocs, m.Footprint
	g := gap(ended.Sub(began), gapShare)
	r.last, r.next = began, began.Add(max(r.next.Sub(began), -saved*g)+g)
}

// gap is how much time a collection has to itself that took so long, and is to take that share of it.
func gap(took time.Duration, share int) time.Duration {
	return min(max(leastGap, time.Duration(share)*took), mostGap)
}

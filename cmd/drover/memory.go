package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// restLook is how often a node looks whether it is at rest, and restLooks how many looks in a row must find it so.
	restLook  = time.Second
	restLooks = 2
	// restAllocs is how many bytes a node at rest allocates between two looks at most: checkpoints, claims, the audit.
	restAllocs = 4 << 20
	// restAgain is how long behind a collection at rest a second one follows: the NATS server lets go of what it has cached
	// of a stream ten seconds after the last write.
	restAgain = 14 * time.Second
	// restGrowth is by how much the memory must have grown since, or could shrink, to be worth another one.
	restGrowth = 8 << 20
)

// heap is what the runtime tells of its memory, in bytes.
type heap struct {
	allocs    uint64 // ever allocated
	footprint uint64 // of the machine
	live      uint64 // found by the last collection
}

// readHeap costs microseconds and stops nobody.
func readHeap() heap {
	s := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(s)
	return heap{allocs: s[0].Value.Uint64(), footprint: s[1].Value.Uint64() - s[2].Value.Uint64(), live: s[3].Value.Uint64()}
}

// rest decides when a collection is worth its while: Go itself waits until the heap has doubled, or two minutes have passed,
// and so a server that was busy and then sleeps would keep what it does not need.
//
// Considered: a lower GOGC, or a limit of memory. Both cost time while there is work; this costs time when there is none.
type rest struct {
	last    uint64 // allocs at the last look
	looks   int    // in a row that found it at rest
	done    uint64 // footprint behind the last collection
	doneAt  time.Time
	settled bool // the second collection of this rest is over
}

// due tells whether to collect now.
func (r *rest) due(now time.Time, h heap) bool {
	grown := h.allocs - r.last
	r.last = h.allocs
	if grown > restAllocs {
		r.looks, r.settled = 0, false
		return false
	}
	if r.looks++; r.looks < restLooks || h.footprint < h.live+restGrowth {
		return false
	}
	switch {
	case h.footprint > r.done+restGrowth:
		r.settled = false
	case r.settled || now.Sub(r.doneAt) < restAgain:
		return false
	default:
		r.settled = true
	}
	r.doneAt = now
	return true
}

// keepLean gives memory back to the machine whenever the node has come to rest, until ctx ends.
func keepLean(ctx context.Context) {
	tick := time.NewTicker(restLook)
	defer tick.Stop()
	var r rest
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if r.due(now, readHeap()) {
				runtime.GC() // pools keep what they have for one collection
				debug.FreeOSMemory()
				r.done = readHeap().footprint
			}
		}
	}
}

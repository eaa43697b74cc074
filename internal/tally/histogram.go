package tally

import (
	"math"
	"sync/atomic"
	"time"
)

// The buckets are those of a native histogram of Prometheus with schema 3: bucket i holds what is
// above 2^((i-1)/8) and at most 2^(i/8) seconds, so that each bound is 1.09 times the one before.
const (
	Schema = 3
	// Below this bound, some 8 µs, nothing is told apart: that is the zero bucket. What takes
	// longer than 2^22 s, some 48 days, counts in the last.
	least, most = -17 * 8, 22 * 8
)

// Classic are the upper bounds, in seconds, of the few buckets that every monitoring system reads.
var Classic = [...]float64{0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 30, 600}

// Zero is the upper bound of the zero bucket, in seconds.
var Zero = math.Ldexp(1, least/8)

// between are the bounds within one doubling: 2^(i/8 - 1).
var between = func() (b [8]float64) {
	for i := range b {
		b[i] = math.Exp2(float64(i+1)/8 - 1)
	}
	return b
}()

// Histogram counts durations.
type Histogram struct {
	sum     atomic.Int64 // ns
	zero    atomic.Uint64
	native  [most - least]atomic.Uint64
	classic [len(Classic)]atomic.Uint64
}

// Observe counts a duration; one below zero, as clocks may give it, counts as zero.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	s := d.Seconds()
	h.sum.Add(int64(d))
	if s <= Zero {
		h.zero.Add(1)
	} else {
		h.native[min(bucket(s)-least-1, len(h.native)-1)].Add(1)
	}
	for n, bound := range Classic { // after the native ones: see Read
		if s <= bound {
			h.classic[n].Add(1)
			return
		}
	}
}

// bucket is the number of the native bucket of what is above [Zero].
func bucket(s float64) int {
	f, exp := math.Frexp(s) // s = f·2^exp, with f from 0.5 to below 1
	if f == 0.5 {
		return (exp - 1) * 8 // the upper bound of the last bucket of the doubling before
	}
	i := 0
	for f > between[i] { // the last is 1
		i++
	}
	return (exp-1)*8 + i + 1
}

// Snapshot is what a [Histogram] has counted at a moment.
type Snapshot struct {
	Count   uint64
	Sum     float64              // seconds
	Upto    [len(Classic)]uint64 // how many took at most as long as each bound of Classic
	Zero    uint64               // how many are in the zero bucket
	Buckets []Bucket             // the native ones that are not empty, in order
}

// Bucket is a native one: its number, and how many are in it.
type Bucket struct {
	I int
	N uint64
}

// Read reads the counts. Count is the sum of the native buckets and the zero bucket, and none of
// Upto is more, whatever is observed meanwhile.
func (h *Histogram) Read() (s Snapshot) {
	upto := uint64(0)
	for i := range h.classic {
		upto += h.classic[i].Load()
		s.Upto[i] = upto
	}
	s.Zero, s.Sum = h.zero.Load(), time.Duration(h.sum.Load()).Seconds()
	s.Count = s.Zero
	for i := range h.native {
		if n := h.native[i].Load(); n > 0 {
			s.Count += n
			s.Buckets = append(s.Buckets, Bucket{i + least + 1, n})
		}
	}
	return s
}

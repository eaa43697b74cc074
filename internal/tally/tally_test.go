package tally

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Each duration is in the bucket whose bounds it lies between, and in the classic ones above it.
func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Histogram
		d := time.Duration(rapid.Int64Range(-1000, int64(60*24*time.Hour)).Draw(t, "ns"))
		if rapid.Bool().Draw(t, "a power") {
			d = time.Duration(math.Ldexp(1, rapid.IntRange(-9, 21).Draw(t, "exp")) * 1e9)
		}
		h.Observe(d)
		s := h.Read()
		seconds := max(d, 0).Seconds()
		if s.Count != 1 || s.Sum != seconds {
			t.Fatalf("%v: count %d, sum %v", d, s.Count, s.Sum)
		}
		for i, bound := range Classic {
			if (s.Upto[i] == 1) != (seconds <= bound) {
				t.Fatalf("%v: at most %v: %d", d, bound, s.Upto[i])
			}
		}
		seen := s.Zero
		if (s.Zero == 1) != (seconds <= Zero) {
			t.Fatalf("%v: zero bucket: %d", d, s.Zero)
		}
		for _, b := range s.Buckets {
			seen += b.N
			above, upto := math.Exp2(float64(b.I-1)/8), math.Exp2(float64(b.I)/8)
			const near = 1 + 1e-12 // the bounds are computed in two ways
			if b.I < most && !(seconds*near > above && seconds <= upto*near) {
				t.Fatalf("%v: bucket %d holds (%v, %v]", d, b.I, above, upto)
			}
		}
		if seen != 1 {
			t.Fatalf("%v is in %d buckets", d, seen)
		}
	})
}

func TestVec(t *testing.T) {
	var v Vec[string, Histogram]
	if a := v.Of("a"); a != v.Of("a") || a == v.Of("b") {
		t.Error("a label has one, and another label another one")
	}
	for i := range 10_000 {
		v.Of(fmt.Sprint(i)).Observe(time.Second)
	}
	labels, others, sum := 0, 0, uint64(0)
	v.Each(func(_ string, isOther bool, h *Histogram) {
		if isOther {
			others++
		} else {
			labels++
		}
		sum += h.Read().Count
	})
	if labels != Limit || others != 1 || sum != 10_000 {
		t.Errorf("got %d labels, %d others, %d durations", labels, others, sum)
	}
	if got := v.Overflow(); got != 10_000-(Limit-2) {
		t.Errorf("overflow: got %d", got)
	}
}

func BenchmarkObserve(b *testing.B) {
	var v Vec[string, Histogram]
	b.ReportAllocs()
	for b.Loop() {
		v.Of("order").Observe(12345678)
	}
}

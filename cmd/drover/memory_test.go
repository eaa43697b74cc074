package main

import (
	"slices"
	"testing"
	"time"
)

// The looks, a second apart, at which a node collects.
func TestRestIsUsed(t *testing.T) {
	const mb = 1 << 20
	for _, tc := range []struct {
		name        string
		allocs      func(second int) uint64 // since the look before
		after, live uint64                  // footprint and live heap behind a collection; the footprint is 300 MB before
		want        []int
	}{
		{"at work", func(int) uint64 { return 50 * mb }, 100 * mb, 80 * mb, nil},
		{"at rest", func(int) uint64 { return mb }, 100 * mb, 80 * mb, []int{1, 15}},
		{"at rest after work", func(s int) uint64 { return uint64(max(10-s, 0)) * 50 * mb }, 100 * mb, 80 * mb, []int{11, 25}},
		{"with pauses", func(s int) uint64 { return uint64(s%2) * 50 * mb }, 100 * mb, 80 * mb, nil},
		{"with nothing more to gain", func(int) uint64 { return 0 }, 104 * mb, 100 * mb, []int{1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, h, began := rest{}, heap{footprint: 300 * mb, live: 80 * mb}, time.Unix(0, 0)
			var got []int
			for s := range 60 {
				h.allocs += tc.allocs(s)
				if r.due(began.Add(time.Duration(s)*time.Second), h) {
					got = append(got, s)
					h.footprint, h.live, r.done = tc.after, tc.live, tc.after
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got collections at %v, want %v", got, tc.want)
			}
		})
	}
}

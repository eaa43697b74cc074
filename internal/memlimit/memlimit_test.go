package memlimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/internal/memlimit"
	"github.com/droverhq/drover/internal/virtual"
)

const mb = 1 << 20

// process is one whose memory is a story: what it allocates in each second, what it needs, and how long a collection takes.
type process struct {
	allocs func(second int) uint64
	needs  func(second int) uint64 // what a collection finds alive
	holes  uint64                  // percent of it: the footprint does not become smaller than both
	takes  time.Duration

	began     time.Time
	read      int // seconds that were read
	now       memlimit.Reading
	collected []int // the seconds in which it was
}

func (p *process) least(second int) uint64 { return p.needs(second) * (100 + p.holes) / 100 }

func (p *process) second() int { return int(time.Since(p.began) / time.Second) }

func (p *process) reading() memlimit.Reading {
	for ; p.read < p.second(); p.read++ {
		n := p.allocs(p.read + 1)
		p.now.Allocs += n
		p.now.Footprint += n
	}
	return p.now
}

func (p *process) collect() {
	s := p.second()
	p.collected = append(p.collected, s)
	p.now.Live = p.needs(s)
	p.now.Footprint = min(p.now.Footprint, p.least(s))
	time.Sleep(p.takes)
}

// The seconds at which memory is given back.
func TestRestIsUsed(t *testing.T) {
	steady := func(int) uint64 { return 80 * mb }
	work := func(upTo int) func(int) uint64 {
		return func(s int) uint64 {
			if s <= upTo {
				return 50 * mb
			}
			return 1000
		}
	}
	for _, tc := range []struct {
		name   string
		allocs func(int) uint64
		needs  func(int) uint64
		holes  uint64
		takes  time.Duration
		want   []int
	}{
		{"at work", work(1000), steady, 30, 0, nil},
		{"after work, and when others let go", work(10), steady, 30, 0, []int{12, 26, 152}},
		{"not between two moments of work", func(s int) uint64 { return uint64(s%2) * 50 * mb }, steady, 30, 0, nil},
		{"after one second of work", func(s int) uint64 {
			if s == 100 {
				return 80 * mb
			}
			return 1000
		}, steady, 30, 0, []int{2, 16, 102, 116, 242}},
		{"after each piece of work", func(s int) uint64 {
			if s%60 < 10 {
				return 50 * mb
			}
			return 0
		}, steady, 30, 0, []int{11, 25, 71, 85, 131, 145, 191, 205, 251, 265}},
		{"not twice at once", func(s int) uint64 {
			if s%5 == 0 {
				return 50 * mb
			}
			return 0
		}, steady, 30, 0, []int{2, 17, 32, 47, 62, 77, 92, 107, 122, 137, 152, 167, 182, 197, 212, 227, 242, 257, 272, 287}},
		{"seldom if it takes long", func(s int) uint64 {
			if s%5 == 0 {
				return 50 * mb
			}
			return 0
		}, steady, 30, 300 * time.Millisecond, []int{2, 32, 62, 92, 122, 152, 182, 212, 242, 272}},
		{"later after work when it takes long", work(10), steady, 30, 600 * time.Millisecond, []int{12, 72, 152}},
		{"but not too seldom", func(s int) uint64 {
			if s%5 == 0 {
				return 50 * mb
			}
			return 0
		}, steady, 30, 3 * time.Second, []int{2, 62, 122, 182, 242}},
		{"now and then while it does next to nothing", func(int) uint64 { return mb / 5 }, steady, 30, 0, []int{2, 16, 82, 142, 208, 274}},
		{"while it does little for long", func(int) uint64 { return 3 * mb }, steady, 30, 600 * time.Millisecond, []int{2, 62, 122, 182, 242}},
		{"while it does little for its size", func(s int) uint64 {
			return []uint64{100 * mb, 30 * mb, 0}[min(s/10, 2)]
		}, func(int) uint64 { return 400 * mb }, 30, 0, []int{11, 25, 151}},
		{"not for little", func(s int) uint64 {
			if s == 1 || s == 100 {
				return 9 * mb
			}
			return 0
		}, func(int) uint64 { return 300 * mb }, 5, 0, []int{2}},
		{"nor when it has what it needs", work(10), func(int) uint64 { return 495 * mb }, 5, 0, []int{2, 16}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				p := &process{allocs: tc.allocs, needs: tc.needs, holes: tc.holes, takes: tc.takes, began: time.Now()}
				p.now.Live, p.now.Footprint = tc.needs(0), p.least(0)
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Second-time.Millisecond)
				defer cancel()
				memlimit.KeepWith(ctx, p.reading, p.collect)
				if diff := cmp.Diff(tc.want, p.collected); diff != "" {
					t.Errorf("collections (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What was allocated and is not needed any more goes back.
func TestCollectGivesBack(t *testing.T) {
	memlimit.Collect() // what is free would hold a part of what is made
	before := memlimit.Read()
	garbage := make([]byte, 64*mb)
	for i := 0; i < len(garbage); i += 4096 {
		garbage[i] = 1
	}
	held := memlimit.Read()
	if got := held.Footprint - before.Footprint; got < 48*mb || held.Allocs-before.Allocs < 64*mb {
		t.Errorf("64 MB have made the process %d bytes larger, by %d allocated; want 48 MB and 64 MB at least", got, held.Allocs-before.Allocs)
	}
	clear(garbage[:1]) // alive up to here
	garbage = nil
	memlimit.Collect()
	if got := memlimit.Read(); got.Footprint > held.Footprint-48*mb || got.Live > 48*mb {
		t.Errorf("got a footprint of %d bytes with %d alive, %d before; want 48 MB less", got.Footprint, got.Live, held.Footprint)
	}
}

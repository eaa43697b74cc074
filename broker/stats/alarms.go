package stats

import (
	"sync"
	"time"

	"github.com/droverhq/drover/internal/tally"
)

// Alarms counts what the timer workers of this process do.
type Alarms struct {
	Late tally.Histogram // how long after its time an alarm had rung

	mu      sync.Mutex
	pending map[*Ringing]struct{}
}

// Ringing are the alarms of a partition that a timer worker of this process rings.
type Ringing struct {
	Partition int
	Pending   func() int // how many alarms are known
}

// Ring notes that the alarms of a partition are rung here, until done is called.
func (s *Stats) Ring(partition int, pending func() int) (done func()) {
	if s == nil {
		return func() {}
	}
	r := &Ringing{Partition: partition, Pending: pending}
	a := &s.Alarms
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pending == nil {
		a.pending = map[*Ringing]struct{}{}
	}
	a.pending[r] = struct{}{}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.pending, r)
	}
}

// Ringing are the partitions whose alarms are rung here, in no order.
func (a *Alarms) Ringing() []*Ringing {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]*Ringing, 0, len(a.pending))
	for r := range a.pending {
		all = append(all, r)
	}
	return all
}

// Rang counts an alarm that has rung, so long after its time.
func (s *Stats) Rang(late time.Duration) {
	if s != nil {
		s.Alarms.Late.Observe(late)
	}
}

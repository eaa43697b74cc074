package stats

import "sync/atomic"

// Partition is how a partition stands that is owned in this process.
type Partition struct {
	Number int
	// InboxLag is how many messages of the inbox the owner has not read, and InboxSince when the
	// first of them was stored, in ns since the epoch; 0: all are read.
	InboxLag, InboxSince atomic.Int64
	// Behind is how many records there are after the last one whose effects are all done.
	Behind atomic.Int64
}

// Own notes that a partition is owned here until disown is called. A nil Stats notes nothing, and
// gives one that nobody reads.
func (s *Stats) Own(n int) (p *Partition, disown func()) {
	p = &Partition{Number: n}
	if s == nil {
		return p, func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owned == nil {
		s.owned = map[int]*Partition{}
	}
	s.owned[n] = p
	return p, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.owned[n] == p {
			delete(s.owned, n)
		}
	}
}

// Owned are the partitions that are owned here, in no order.
func (s *Stats) Owned() []*Partition {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Partition, 0, len(s.owned))
	for _, p := range s.owned {
		all = append(all, p)
	}
	return all
}

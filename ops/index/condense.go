package index

import (
	"slices"
)

// condense puts what is left of a block with many holes into a new one. The caller is the writer.
func (s *Store) condense(n int) {
	b := s.blocks[n]
	if holes := b.n - b.rows; holes >= blockRows/4 && holes >= 3*b.rows || b.rows == 0 {
		s.remake(n)
	}
}

// remake puts the rows of a block into a new one, together with those of the block that has the
// fewest, if they are few. The block that is being filled stays alone. The new one is made aside:
// readers wait only while the places are changed.
func (s *Store) remake(n int) {
	b, old := s.blocks[n], []int{n}
	for m, other := range s.blocks {
		if n == s.filling || m == s.filling || m == n || other == nil ||
			b.rows == 0 || b.rows+other.rows > blockRows/2 {
			continue
		}
		if len(old) == 1 || other.rows < s.blocks[old[1]].rows {
			old = append(old[:1], m)
		}
	}
	slices.Sort(old) // roughly by age
	var from []place // of each row of the new block
	made := &block{}
	for _, m := range old {
		for row := range s.blocks[m].n {
			if s.blocks[m].live.has(row) {
				made.add(s.blocks[m].row(row, s.names), s.names)
				from = append(from, at(m, row))
			}
		}
	}
	made.shrink()

	s.reading.Lock()
	defer s.reading.Unlock()
	number := s.free()
	for row, p := range from {
		hash := made.hash(row)
		*s.find.slot(hash, func(q place) bool { return q == p }) = slotOf(hash, at(number, row))
	}
	if made.n > 0 {
		s.place(number, made)
	}
	for _, m := range old {
		s.blocks[m] = nil
	}
	switch {
	case n != s.filling:
	case made.n > 0:
		s.filling = number
	default:
		s.filling = -1
	}
}

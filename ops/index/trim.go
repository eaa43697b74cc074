package index

import (
	"slices"

	"github.com/droverhq/drover/schemas"
)

// Trim drops rows of closed runs, those first that closed first, if the store takes more bytes of
// memory than it may. It goes a little below the bound, so that it has work now and then only. It
// returns how many rows it has dropped. Open runs stay.
func (s *Store) Trim(bound int64) (dropped int) {
	s.writing.Lock()
	defer s.writing.Unlock()
	size := s.Bytes()
	if size <= bound || s.stats.Rows == 0 {
		return 0
	}
	var closes []schemas.Timestamp
	for _, b := range s.blocks {
		if b != nil {
			b.live.each(func(row int) {
				if b.closed[row] != 0 {
					closes = append(closes, b.closed[row])
				}
			})
		}
	}
	excess := size - bound + bound/16
	most := min(1+int(excess/(1+size/int64(s.stats.Rows))), len(closes))
	if most == 0 {
		return 0
	}
	slices.Sort(closes)
	until := closes[most-1]
	for m, b := range slices.Clone(s.blocks) {
		if b == nil {
			continue
		}
		n := s.dropClosed(m, until, most-dropped)
		dropped += n
		if n > 0 && 8*(b.n-b.rows) >= b.n {
			s.remake(m)
		}
	}
	return dropped
}

// dropClosed drops rows of a block that closed at a time or before, as many as there may be.
func (s *Store) dropClosed(m int, until schemas.Timestamp, most int) (dropped int) {
	s.reading.Lock()
	defer s.reading.Unlock()
	b := s.blocks[m]
	for row := range b.n {
		if dropped == most {
			break
		}
		if !b.live.has(row) || b.closed[row] == 0 || b.closed[row] > until {
			continue
		}
		p, hash := at(m, row), b.hash(row)
		s.take(p, hash, s.find.slot(hash, func(q place) bool { return q == p }))
		dropped++
		s.stats.DroppedUntil = max(s.stats.DroppedUntil, b.closed[row])
	}
	s.stats.Dropped += int64(dropped)
	return dropped
}

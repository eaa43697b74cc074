package index

import "math/bits"

// blockRows is how many rows a block has room for.
const blockRows = 8192

// rowset is a set of rows of one block.
type rowset [blockRows / 64]uint64

func (s *rowset) add(row int)      { s[row/64] |= 1 << (row % 64) }
func (s *rowset) remove(row int)   { s[row/64] &^= 1 << (row % 64) }
func (s *rowset) has(row int) bool { return s[row/64]>>(row%64)&1 == 1 }

// len is how many rows there are.
func (s *rowset) len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// each calls fn for every row, the last first: that is the newest one, as a rule.
func (s *rowset) each(fn func(row int)) {
	for w := len(s) - 1; w >= 0; w-- {
		for word := s[w]; word != 0; {
			bit := 63 - bits.LeadingZeros64(word)
			word &^= 1 << bit
			fn(w*64 + bit)
		}
	}
}

// keep leaves only the rows for which ok says so.
func (s *rowset) keep(ok func(row int) bool) {
	for w, word := range s {
		for rest := word; rest != 0; rest &= rest - 1 {
			if bit := bits.TrailingZeros64(rest); !ok(w*64 + bit) {
				word &^= 1 << bit
			}
		}
		s[w] = word
	}
}

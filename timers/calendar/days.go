package calendar

import "math/bits"

// monthDays says which days of a month match. Bit n of each set stands for n.
type monthDays struct {
	any         bool
	plain       uint32 // the n-th
	fromEnd     uint32 // the last but n: bit 0 is L, bit 3 is L-3
	nearest     uint32 // the weekday nearest to the n-th, in the same month: 15W
	lastWeekday bool   // LW
}

// weekDays says which days of the week match. Bit 0 of each set is Sunday.
type weekDays struct {
	any   bool
	plain uint8
	nth   [6]uint8 // nth[2] are the second ones in the month: FRI#2
	last  uint8    // the last in the month: FRIL
}

// in returns the days of a month as bits 1 to 31. first is the weekday of the 1st, length the
// number of days.
func (s *monthDays) in(first, length int) uint32 {
	all := uint32(1)<<(length+1) - 2
	if s.any {
		return all
	}
	set := s.plain
	for rest := s.fromEnd; rest != 0; rest &= rest - 1 {
		if n := length - bits.TrailingZeros32(rest); n >= 1 {
			set |= 1 << n
		}
	}
	for rest := s.nearest; rest != 0; rest &= rest - 1 {
		if n := bits.TrailingZeros32(rest); n <= length {
			set |= 1 << nearestWeekday(n, first, length)
		}
	}
	if s.lastWeekday {
		set |= 1 << nearestWeekday(length, first, length)
	}
	return set & all
}

// nearestWeekday is the day from Monday to Friday that is nearest to the n-th and in its month.
func nearestWeekday(n, first, length int) int {
	switch (first + n - 1) % 7 {
	case 6:
		if n == 1 {
			return 3
		}
		return n - 1
	case 0:
		if n == length {
			return n - 2
		}
		return n + 1
	default:
		return n
	}
}

// in returns the days of a month as bits 1 to 31, as [monthDays.in] does.
func (s *weekDays) in(first, length int) uint32 {
	all := uint32(1)<<(length+1) - 2
	if s.any {
		return all
	}
	var set uint32
	for n := 1; n <= length; n++ {
		bit := uint8(1) << ((first + n - 1) % 7)
		if s.plain&bit != 0 || s.nth[(n+6)/7]&bit != 0 || n+7 > length && s.last&bit != 0 {
			set |= 1 << n
		}
	}
	return set
}

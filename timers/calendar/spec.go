package calendar

import "math/bits"

// spec is a cron expression or the fields of a calendar. Bit n of a set stands for the value n.
type spec struct {
	second, minute uint64
	hour           uint32
	month          uint16
	monthDays      monthDays
	weekDays       weekDays
	years          []bool // by year - firstYear; nil is every year
	// elapsed says that the hours are not named but any or each n-th: then times go by elapsed
	// time where the clock is changed.
	elapsed bool
}

const (
	allMinutes = 1<<60 - 1
	allHours   = 1<<24 - 1
)

// next returns the first time that matches and is not before w. ok is false if none is before the
// end of lastYear.
func (s *spec) next(w wall) (match wall, ok bool) {
	d := w.day()
	year, month, n := d.civil()
	for at := year*12 + month - 1; at < (lastYear+1)*12; at, n = at+1, 1 {
		year, month := at/12, at%12+1
		if !s.inYear(year) {
			at = year*12 + 11
			continue
		}
		if s.month&(1<<month) == 0 {
			continue
		}
		for rest := s.days(year, month) >> n << n; rest != 0; rest &= rest - 1 {
			today := dayOf(year, month, bits.TrailingZeros32(rest))
			from := 0
			if today == d {
				from = w.secondOfDay()
			}
			if second, ok := s.nextOfDay(from); ok {
				return today.start() + wall(second), true
			}
		}
	}
	return 0, false
}

func (s *spec) inYear(year int) bool {
	return s.years == nil || year >= firstYear && year <= lastYear && s.years[year-firstYear]
}

// days returns the days of a month that match, as bits 1 to 31.
func (s *spec) days(year, month int) uint32 {
	first, length := dayOf(year, month, 1).weekday(), lengthOf(year, month)
	return s.monthDays.in(first, length) & s.weekDays.in(first, length)
}

// matchesDay tells whether a day matches, at whatever time.
func (s *spec) matchesDay(d dayNumber) bool {
	year, month, n := d.civil()
	return s.inYear(year) && s.month&(1<<month) != 0 && s.days(year, month)&(1<<n) != 0
}

// nextOfDay returns the first second of the day that matches and is not before from. Both are
// seconds since midnight.
func (s *spec) nextOfDay(from int) (second int, ok bool) {
	h, m, sec := from/hour, from/minute%60, from%60
	if s.hour&(1<<h) != 0 {
		if s.minute&(1<<m) != 0 {
			if sec, ok := lowest(s.second, sec); ok {
				return h*hour + m*minute + sec, true
			}
		}
		if m, ok := lowest(s.minute, m+1); ok {
			return h*hour + m*minute + bits.TrailingZeros64(s.second), true
		}
	}
	if h, ok := lowest(uint64(s.hour), h+1); ok {
		return h*hour + bits.TrailingZeros64(s.minute)*minute + bits.TrailingZeros64(s.second), true
	}
	return 0, false
}

// lowest returns the first value of a set that is not below from.
func lowest(set uint64, from int) (n int, ok bool) {
	set = set >> from << from
	return bits.TrailingZeros64(set), set != 0
}

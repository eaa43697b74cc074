package calendar

import "time"

// wall is what a clock on a wall shows: the seconds since 1970-01-01 00:00:00, as if no zone ever
// changed its offset.
type wall int64

const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour

	firstYear = 1970
	lastYear  = 2261 // the last whole one that a schemas.Timestamp can hold
)

// dayNumber is a day, counted from 1970-01-01, a Thursday.
type dayNumber int64

func (w wall) day() dayNumber { return dayNumber(floorDiv(int64(w), day)) }

// secondOfDay is from 0 to 86399.
func (w wall) secondOfDay() int { return int(int64(w) - floorDiv(int64(w), day)*day) }

func (d dayNumber) start() wall { return wall(d) * day }

// weekday is from 0, Sunday, to 6.
func (d dayNumber) weekday() int {
	n := (int64(d) + int64(time.Thursday)) % 7
	if n < 0 {
		n += 7
	}
	return int(n)
}

func (d dayNumber) civil() (year, month, dayOfMonth int) {
	y, m, n := time.Unix(int64(d)*day, 0).UTC().Date()
	return y, int(m), n
}

func dayOf(year, month, dayOfMonth int) dayNumber {
	return dayNumber(time.Date(year, time.Month(month), dayOfMonth, 0, 0, 0, 0, time.UTC).
		Unix() / day)
}

// lengthOf is the number of days of a month.
func lengthOf(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// floorDiv divides and rounds down; b is positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Package duration reads and writes lengths of time as authors of flows and operators write them:
// 10ms, 1m 30s, 1h30m, 7d, 2 weeks.
//
// A length is one or more components, a number and a unit each, with or without white space between
// them. Units go from large to small, each at most once; they have no case. A number may have a
// fraction as long as the whole is an exact number of nanoseconds. There is no bare number, no sign
// and no month or year, whose length is not fixed; what is refused says what to write instead.
//
// Everything here is a function of its arguments and takes time linear in them. Any package may use
// it.
package duration

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Forever stands for no end. No text is read as this length, so it can be told apart.
const Forever time.Duration = math.MaxInt64

const day = 24 * time.Hour

// Error says where and why a text is not a length of time.
type Error struct {
	Text    string // what was given, shortened if it is long
	Offset  int    // bytes from the start of what was given
	Problem string
	Hint    string // what to write instead; may be empty
}

func (e *Error) Error() string {
	s := fmt.Sprintf("duration %q: %s", e.Text, e.Problem)
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

const example = "write a number with a unit, such as 10ms, 1m 30s, 7d or 2 weeks"

// Parse reads a text that is a length of time and nothing else, white space around it aside. Errors
// are of type *Error.
func Parse(text string) (time.Duration, error) {
	d, n, err := Prefix(text)
	if err != nil {
		return 0, err
	}
	n = skipSpace(text, n)
	if n < len(text) {
		return 0, trailing(text, n)
	}
	return d, nil
}

// Prefix reads the length of time at the front of a text, as many components as belong to it, and
// returns how many bytes it took, white space before it included and after it not. It stops before
// a component whose unit is not smaller than the one before: "1s 5s" begins with one second. Errors
// are of type *Error.
func Prefix(text string) (d time.Duration, n int, err error) {
	n = skipSpace(text, 0)
	first, err := component(text, n)
	if err != nil {
		return 0, 0, err
	}
	d, n = first.length, first.end
	for smallest := first.unit; ; {
		c, err := component(text, skipSpace(text, n))
		if err != nil || c.unit >= smallest {
			return d, n, nil // not ours: the caller knows what may follow
		}
		if d > Forever-1-c.length {
			return 0, 0, problem(text, n, "is too long", tooLong)
		}
		d, n, smallest = d+c.length, c.end, c.unit
	}
}

// String writes a length of time so that Parse reads the same one. Forever is written as "forever",
// and a negative length, which Parse never returns, with a sign: neither is read back.
func String(d time.Duration) string {
	switch {
	case d == Forever:
		return "forever"
	case d == 0:
		return "0s"
	case d == math.MinInt64:
		return "-forever"
	case d < 0:
		return "-" + String(-d)
	}
	var b []byte
	for _, u := range written {
		if n := d / u.length; n > 0 {
			b = append(strconv.AppendInt(b, int64(n), 10), u.name...)
			d -= n * u.length
		}
	}
	return string(b)
}

var written = []struct {
	name   string
	length time.Duration
}{
	{"d", day},
	{"h", time.Hour},
	{"m", time.Minute},
	{"s", time.Second},
	{"ms", time.Millisecond},
	{"us", time.Microsecond},
	{"ns", time.Nanosecond},
}

const tooLong = "the longest is about 106751 days; write forever where that is allowed"

type part struct {
	length, unit time.Duration
	end          int // offset after the unit
}

// component reads one number with its unit at offset at.
func component(text string, at int) (part, error) {
	whole, fraction, end, err := number(text, at)
	if err != nil {
		return part{}, err
	}
	unitAt := skipSpace(text, end)
	unitEnd := skipLetters(text, unitAt)
	name := strings.ToLower(text[unitAt:unitEnd])
	unit, ok := unitOf(name)
	switch {
	case ok:
	case name == "":
		return part{}, problem(text, end, "the number has no unit", example)
	case isCalendar(name):
		return part{}, problem(text, unitAt, strconv.Quote(clip(name))+" has no fixed length",
			"write days or weeks")
	default:
		return part{}, problem(text, unitAt, strconv.Quote(clip(name))+" is no unit",
			"units are ns, us, ms, s, m, h, d, w and their long names")
	}
	length, err := multiply(text, at, whole, fraction, unit)
	return part{length: length, unit: unit, end: unitEnd}, err
}

// number finds the digits at offset at; the fraction is empty or has digits only.
func number(text string, at int) (whole, fraction string, end int, err error) {
	end = skipDigits(text, at)
	if end == at {
		return "", "", 0, noNumber(text, at)
	}
	whole = text[at:end]
	if end == len(text) || text[end] != '.' {
		return whole, "", end, nil
	}
	from := end + 1
	end = skipDigits(text, from)
	if end == from {
		return "", "", 0, problem(text, from, "the point has no digits after it", example)
	}
	return whole, text[from:end], end, nil
}

func noNumber(text string, at int) error {
	word := strings.ToLower(text[at:skipLetters(text, at)])
	switch {
	case at == len(text):
		return problem(text, at, "is empty", example)
	case text[at] == '-':
		return problem(text, at, "is negative", "a length of time is zero or more")
	case word == "forever":
		return problem(text, at, "forever is not allowed here", example)
	}
	return problem(text, at, "does not begin with a number", example)
}

func multiply(
	text string, at int, whole, fraction string, unit time.Duration,
) (time.Duration, error) {
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > int64((Forever-1)/unit) {
		return 0, problem(text, at, "is too long", tooLong)
	}
	d := time.Duration(n) * unit
	for _, digit := range []byte(strings.TrimRight(fraction, "0")) {
		if unit%10 != 0 {
			return 0, problem(text, at, "is finer than a nanosecond",
				"write fewer digits after the point")
		}
		unit /= 10
		part := time.Duration(digit-'0') * unit
		if d > Forever-1-part {
			return 0, problem(text, at, "is too long", tooLong)
		}
		d += part
	}
	return d, nil
}

func unitOf(name string) (time.Duration, bool) {
	switch name {
	case "ns", "nano", "nanos", "nanosecond", "nanoseconds":
		return time.Nanosecond, true
	case "us", "µs", "μs", "micro", "micros", "microsecond", "microseconds":
		return time.Microsecond, true
	case "ms", "milli", "millis", "millisecond", "milliseconds":
		return time.Millisecond, true
	case "s", "sec", "secs", "second", "seconds":
		return time.Second, true
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute, true
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour, true
	case "d", "day", "days":
		return day, true
	case "w", "week", "weeks":
		return 7 * day, true
	}
	return 0, false
}

func isCalendar(name string) bool {
	switch name {
	case "mo", "month", "months", "y", "yr", "yrs", "year", "years":
		return true
	}
	return false
}

func trailing(text string, at int) error {
	c, err := component(text, at)
	switch {
	case err == nil:
		return problem(text, at, strconv.Quote(clip(text[at:c.end]))+" is out of order",
			"units go from large to small, each at most once")
	case isDigit(text[at]):
		return err
	}
	return problem(text, at, strconv.Quote(clip(text[at:]))+" is not part of a duration", example)
}

func problem(text string, at int, what, hint string) error {
	return &Error{Text: clip(text), Offset: at, Problem: what, Hint: hint}
}

// clip keeps messages short whatever the input is.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	end := most
	for !utf8.RuneStart(s[end]) && end > most-utf8.UTFMax {
		end--
	}
	return s[:end] + "..."
}

func skipSpace(s string, at int) int {
	for at < len(s) && (s[at] == ' ' || s[at] == '\t' || s[at] == '\n' || s[at] == '\r') {
		at++
	}
	return at
}

func skipDigits(s string, at int) int {
	for at < len(s) && isDigit(s[at]) {
		at++
	}
	return at
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// skipLetters goes on over bytes above ASCII too, for the µ.
func skipLetters(s string, at int) int {
	for at < len(s) && ('a' <= s[at]|0x20 && s[at]|0x20 <= 'z' || s[at] >= utf8.RuneSelf) {
		at++
	}
	return at
}

package query

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/droverhq/drover/internal/duration"
	"github.com/droverhq/drover/schemas"
)

// Compare is negative if v is less than w, and positive if it is more. Both are of one kind.
func (v Value) Compare(w Value) int {
	switch {
	case v.Kind == Text:
		return strings.Compare(v.Text, w.Text)
	case v.Fraction && w.Fraction:
		return cmp.Compare(v.Float, w.Float)
	case v.Fraction:
		return -w.Compare(v)
	case !w.Fraction:
		return cmp.Compare(v.Int, w.Int)
	case w.Float >= 1<<63:
		return -1
	case w.Float < -1<<63:
		return 1
	}
	if below := math.Floor(w.Float); v.Int <= int64(below) { // w lies between two whole numbers
		return -1
	}
	return 1
}

// ParseNumber reads a decimal number, and returns false for any other text: 3, -0.5 and 1e9 are
// numbers; " 3", +3, 0x3, 1_000 and NaN are not.
func ParseNumber(text string) (v Value, ok bool) {
	v.Kind = Number
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || digits[0] < '0' || '9' < digits[0] || strings.ContainsAny(digits, "xXpP_") {
		return v, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		v.Int = n
		return v, true
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return v, false
	case f == math.Trunc(f) && -1<<63 <= f && f < 1<<63:
		v.Int = int64(f)
	default:
		v.Float, v.Fraction = f, true
	}
	return v, true
}

// instantNow is the word for the time of the question.
const instantNow = "now"

const timeForm = "a time such as now-24h, 2026-01-31 or 2026-01-31T08:30:00Z"

// parseInstant reads a time: RFC 3339, a date, both in UTC unless it says otherwise, or now with or
// without a distance.
func parseInstant(text string, now time.Time) (v Value, ok bool) {
	v.Kind = Instant
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", time.DateTime, time.DateOnly,
	} {
		if t, err := time.Parse(layout, text); err == nil {
			v.Int = instant(t)
			return v, true
		}
	}
	if len(text) < len(instantNow) || !fold(text[:len(instantNow)], instantNow) {
		return v, false
	}
	switch distance := text[len(instantNow):]; {
	case distance == "":
		v.Int = instant(now)
		return v, true
	case distance[0] == '-', distance[0] == '+':
		d, err := duration.Parse(distance[1:])
		if distance[0] == '-' {
			d = -d
		}
		v.Int = instant(now.Add(d))
		return v, err == nil
	}
	return v, false
}

// instant is a time as rows have it; a time that they cannot have is the first or the last that
// they can.
func instant(t time.Time) int64 {
	if t.IsZero() { // which stands for no time there
		return math.MinInt64
	}
	return int64(schemas.At(t))
}

const spanForm = "a length of time such as 90s, 5m or 1h30m"

func parseSpan(text string) (v Value, ok bool) {
	d, err := duration.Parse(text)
	return Value{Kind: Span, Int: int64(d)}, err == nil
}

// String is the value as it stands in a query.
func (v Value) String() string {
	switch {
	case v.Kind == Text:
		return quote(v.Text, '\'')
	case v.Kind == Instant:
		return quote(time.Unix(0, v.Int).UTC().Format(time.RFC3339Nano), '\'')
	case v.Kind == Span:
		return duration.String(time.Duration(v.Int))
	case v.Fraction:
		return strconv.FormatFloat(v.Float, 'g', -1, 64)
	}
	return strconv.FormatInt(v.Int, 10)
}

// quote puts a text in quotes, so that it is read as the same.
func quote(text string, mark rune) string {
	var b strings.Builder
	b.WriteRune(mark)
	for _, r := range text {
		switch {
		case r == mark || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case !unicode.IsPrint(r) && r <= 0xFFFF:
			s := strconv.FormatInt(int64(r), 16)
			b.WriteString(`\u` + strings.Repeat("0", 4-len(s)) + s)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteRune(mark)
	return b.String()
}

package duration_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/duration"
	"pgregory.net/rapid"
)

const day = 24 * time.Hour

func TestParse(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10ms":                    10 * time.Millisecond,
		"1m 30s":                  90 * time.Second,
		"1h30m":                   90 * time.Minute,
		"7d":                      7 * day,
		"2 weeks":                 14 * day,
		"1 week 1 day":            8 * day,
		"1 minute":                time.Minute,
		"3 min 2 secs":            182 * time.Second,
		"  5s\t":                  5 * time.Second,
		"0s":                      0,
		"1H30M":                   90 * time.Minute,
		"1.5h":                    90 * time.Minute,
		"0.000000001s":            1,
		"1.50ms":                  1500 * time.Microsecond,
		"2µs":                     2 * time.Microsecond,
		"2μs":                     2 * time.Microsecond,
		"2us 3ns":                 2003,
		"1d 2h 3m 4s 5ms":         day + 2*time.Hour + 3*time.Minute + 4*time.Second + 5*time.Millisecond,
		"106751d":                 106751 * day,
		"9223372036854775806ns":   math.MaxInt64 - 1,
		"000000000000000000005ms": 5 * time.Millisecond,
	} {
		got, err := duration.Parse(text)
		if err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct {
		text   string
		offset int
		want   string
	}{
		{"", 0, "is empty"},
		{"   ", 3, "is empty"},
		{"5", 1, "no unit"},
		{"0", 1, "no unit"},
		{"2.5", 3, "no unit"},
		{"1m 30", 5, "no unit"},
		{"-1s", 0, "negative"},
		{"+1s", 0, "does not begin with a number"},
		{"s", 0, "does not begin with a number"},
		{".5s", 0, "does not begin with a number"},
		{"1.s", 2, "no digits after"},
		{"1 parsec", 2, `"parsec" is no unit`},
		{"1 month", 2, "no fixed length"},
		{"2y", 1, "no fixed length"},
		{"30s 1m", 4, `"1m" is out of order`},
		{"1s1s", 2, "out of order"},
		{"1h, 5m", 2, "not part of a duration"},
		{"1h and", 3, "not part of a duration"},
		{"1h\x00", 2, "not part of a duration"},
		{"forever", 0, "forever is not allowed here"},
		{"0.5ns", 0, "finer than a nanosecond"},
		{"0.0000001ms", 0, "finer than a nanosecond"},
		{"9223372036854775807ns", 0, "too long"},
		{"9223372036854775808ns", 0, "too long"},
		{"99999999999999999999d", 0, "too long"},
		{"106752d", 0, "too long"},
		{"106751d 23h 59m", 11, "too long"},
		{"106751.999d", 0, "too long"},
		{strings.Repeat("9", 1<<20) + "s", 0, "too long"},
	} {
		got, err := duration.Parse(tc.text)
		e, ok := errors.AsType[*duration.Error](err)
		if !ok || e.Offset != tc.offset || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.40q: got %v, %v (%#v), want offset %d and %q", tc.text, got, err, e, tc.offset, tc.want)
		}
		if ok && len(err.Error()) > 300 {
			t.Errorf("%.40q: got a message of %d bytes", tc.text, len(err.Error()))
		}
	}
}

func TestPrefix(t *testing.T) {
	for _, tc := range []struct {
		text string
		want time.Duration
		rest string
	}{
		{"1m 30s increasing 2x", 90 * time.Second, " increasing 2x"},
		{" 10s", 10 * time.Second, ""},
		{"1s 5s 10s", time.Second, " 5s 10s"},
		{"1h, 2)", time.Hour, ", 2)"},
		{"1h)", time.Hour, ")"},
		{"1m 2 hash x", time.Minute, " 2 hash x"},
		{"1m hard", time.Minute, " hard"},
		{"2 weeks hard", 14 * day, " hard"},
	} {
		got, n, err := duration.Prefix(tc.text)
		if err != nil || got != tc.want || tc.text[n:] != tc.rest {
			t.Errorf("%q: got %v, rest %q, %v, want %v, rest %q", tc.text, got, tc.text[n:], err, tc.want, tc.rest)
		}
	}
	if _, n, err := duration.Prefix("2 hash x"); err == nil || n != 0 {
		t.Errorf("a count: got %d bytes, %v, want an error", n, err)
	}
}

func TestString(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                       "0s",
		90 * time.Minute:        "1h30m",
		14 * day:                "14d",
		1500 * time.Millisecond: "1s500ms",
		1001:                    "1us1ns",
		duration.Forever:        "forever",
		-time.Second:            "-1s",
		math.MinInt64:           "-forever",
	} {
		if got := duration.String(d); got != want {
			t.Errorf("%d: got %q, want %q", d, got, want)
		}
	}
}

func TestStringParsesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64Range(0, math.MaxInt64-1).Draw(t, "nanoseconds")) // the last is Forever
		got, err := duration.Parse(duration.String(want))
		if err != nil || got != want {
			t.Fatalf("%s: got %d, %v, want %d", duration.String(want), got, err, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"1m 30s", "1h30m", "2 weeks", "forever", "-1", "2.5", "1.5h", "9223372036854775807ns", "1µs", "1s\x00", "1m 2 hash"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := duration.Parse(text)
		if err != nil {
			e, ok := errors.AsType[*duration.Error](err)
			if !ok || e.Offset < 0 || e.Offset > len(text) {
				t.Fatalf("got %#v, want an error with an offset within the text", err)
			}
			return
		}
		if again, err := duration.Parse(duration.String(d)); err != nil || again != d || d < 0 {
			t.Fatalf("got %v, then %v, %v", d, again, err)
		}
	})
}

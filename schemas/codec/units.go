package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Unlimited is the duration that is written as NONE.
const Unlimited = -1

// AppendDuration appends a span of nanoseconds as JSON: seconds, or NONE.
func AppendDuration(b []byte, d int64) []byte {
	if d == Unlimited {
		return append(b, `"NONE"`...)
	}
	n := uint64(d)
	if d < 0 {
		b, n = append(b, '-'), -n
	}
	b = strconv.AppendUint(b, n/uint64(time.Second), 10)
	if n %= uint64(time.Second); n > 0 {
		b = append(b, bytes.TrimRight(fmt.Appendf(nil, ".%09d", n), "0")...)
	}
	return b
}

// ReadDuration reads the JSON of a duration: seconds, a text that [time.ParseDuration] takes, or
// NONE. It returns nanoseconds.
func ReadDuration(b []byte) (d int64, err error) {
	if n, whole := wholeSeconds(b); whole {
		return n, nil
	}
	s, ok := string(b), false
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &s); err != nil {
			return 0, err
		}
		if d, ok = parseText(s); !ok && !strings.HasPrefix(s, "-") {
			// people write texts, and AppendDuration no negative one
			d, ok = parseSeconds(s)
		}
	} else {
		d, ok = parseSeconds(s)
	}
	if !ok {
		return 0, fmt.Errorf(
			"duration %s: want seconds (90, 0.5) up to 292 years, a text such as \"1m30s\", or \"NONE\"",
			b)
	}
	return d, nil
}

// wholeSeconds reads what most limits are: up to nine digits.
func wholeSeconds(b []byte) (d int64, ok bool) {
	if len(b) == 0 || len(b) > 9 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		d = 10*d + int64(c-'0')
	}
	return d * int64(time.Second), true
}

func parseText(s string) (d int64, ok bool) {
	if s == "NONE" {
		return Unlimited, true
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		return 0, false
	}
	return int64(v), true
}

// parseSeconds reads plain decimals exactly and any other form of a number to the precision of a
// float.
func parseSeconds(s string) (d int64, ok bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) {
		return 0, false
	}
	whole, frac, _ := strings.Cut(s, ".")
	if len(frac) <= 9 {
		if n, err := strconv.ParseInt(whole+frac+"000000000"[len(frac):], 10, 64); err == nil {
			return n, true
		}
	}
	f = math.Round(f * float64(time.Second))
	if math.Abs(f) >= math.MaxInt64 {
		return 0, false
	}
	return int64(f), true
}

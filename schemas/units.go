package schemas

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/droverhq/drover/schemas/codec"
)

// Duration is a span of time on the wire: seconds in JSON (a number, or a text that
// [time.ParseDuration] takes), nanoseconds in msgpack. Zero means "not set: take the default";
// [Unlimited] ("NONE" in JSON) means "no limit".
type Duration int64

// Unlimited says that there is no limit, even where a default has one.
const Unlimited Duration = codec.Unlimited

// Seconds returns n seconds, or the longest Duration there is of that sign if none is so long. A
// NaN is 0.
func Seconds(n float64) Duration {
	switch d := n * float64(time.Second); { // what does not fit is converted as each machine likes
	case d >= math.MaxInt64:
		return math.MaxInt64
	case d <= math.MinInt64:
		return math.MinInt64
	case math.IsNaN(d):
		return 0
	default:
		return Duration(d)
	}
}

// Std returns d as a [time.Duration].
func (d Duration) Std() time.Duration { return time.Duration(d) }

// Limited tells whether d is a real limit.
func (d Duration) Limited() bool { return d > 0 }

func (d Duration) String() string {
	switch {
	case d == Unlimited:
		return "NONE"
	default:
		return d.Std().String()
	}
}

// MarshalJSON implements [json.Marshaler]. It is exact: a float would lose nanoseconds from 104
// days on.
func (d Duration) MarshalJSON() ([]byte, error) { return d.appendJSON(nil), nil }

func (d Duration) appendJSON(b []byte) []byte { return codec.AppendDuration(b, int64(d)) }

// UnmarshalJSON implements [json.Unmarshaler]. It takes every number that MarshalJSON writes, also
// those that are no limit, since what was taken as msgpack must be shown: what is asked for is
// judged by itself, as by [StartRequest.ValidateLimits].
func (d *Duration) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	n, err := codec.ReadDuration(b)
	if err == nil {
		*d = Duration(n)
	}
	return err
}

// Timestamp is an instant: Unix nanoseconds, UTC. In JSON it is RFC 3339 with nanoseconds.
type Timestamp int64

// At returns t as a Timestamp; the zero time is 0. A time before 1678 or after 2261 is the first or
// the last Timestamp there is.
func At(t time.Time) Timestamp {
	switch {
	case t.IsZero():
		return 0
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return Timestamp(t.UnixNano())
}

// Time returns ts as a [time.Time] in UTC; 0 is the zero time.
func (ts Timestamp) Time() time.Time {
	if ts == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(ts)).UTC()
}

// Add returns the instant d later, or the last one there is if no Timestamp can hold that: one that
// wrapped around would be over at once.
func (ts Timestamp) Add(d Duration) Timestamp {
	if d > 0 && ts > math.MaxInt64-Timestamp(d) {
		return math.MaxInt64
	}
	return ts + Timestamp(d)
}

// Sub returns the span from u to ts.
func (ts Timestamp) Sub(u Timestamp) time.Duration { return time.Duration(ts - u) }

func (ts Timestamp) String() string { return ts.Time().Format(time.RFC3339Nano) }

// MarshalJSON implements [json.Marshaler].
func (ts Timestamp) MarshalJSON() ([]byte, error) {
	return ts.appendJSON(make([]byte, 0, len(time.RFC3339Nano)+2)), nil
}

func (ts Timestamp) appendJSON(b []byte) []byte {
	if ts == 0 {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = ts.Time().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// UnmarshalJSON implements [json.Unmarshaler].
func (ts *Timestamp) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		*ts = 0
		return nil
	}
	var t time.Time
	if err := t.UnmarshalJSON(b); err != nil {
		return fmt.Errorf("time %s: want RFC 3339: %w", b, err)
	}
	if at := At(t); t.IsZero() || at.Time().Equal(t) {
		*ts = at
		return nil
	}
	return fmt.Errorf("time %s: want a year from 1678 to 2261", b)
}

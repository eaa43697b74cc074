package schemas_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/schemas"
)

func TestDurationJSON(t *testing.T) {
	const sec = schemas.Duration(time.Second)
	for _, tt := range []struct {
		json string
		want schemas.Duration
		form string // how it is written; json if empty
	}{
		{`0`, 0, ""},
		{`90`, 90 * sec, ""},
		{`0.5`, sec / 2, ""},
		{`1.000000001`, sec + 1, ""},
		{`31536000.123456789`, 31536000*sec + 123456789, ""},
		{`"NONE"`, schemas.Unlimited, ""},
		{`4000000000`, 4000000000 * sec, ""},
		{`1e3`, 1000 * sec, `1000`},
		{`1.5e-3`, sec / 1000 * 3 / 2, `0.0015`},
		{`0.0000000004`, 0, `0`},
		{`0.1000000006`, sec/10 + 1, `0.100000001`},
		{`-0`, 0, `0`},
		{`90.0`, 90 * sec, `90`},
		{`"90"`, 90 * sec, `90`},
		{`"0.29"`, 29 * sec / 100, `0.29`},
		{`"1m30s"`, 90 * sec, `90`},
		{`"1.5h"`, 5400 * sec, `5400`},
		{`"100ms"`, sec / 10, `0.1`},
		{`"0"`, 0, `0`},
		{`-5`, -5 * sec, ""},
		{`-0.5`, -sec / 2, ""},
		{`4611686019`, 4611686019 * sec, ""},
	} {
		t.Run(tt.json, func(t *testing.T) {
			var got schemas.Duration
			if err := json.Unmarshal([]byte(tt.json), &got); err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Fatalf("got %d, want %d", got, tt.want)
			}
			b, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if tt.form == "" {
				tt.form = tt.json
			}
			if string(b) != tt.form {
				t.Fatalf("got %s, want %s", b, tt.form)
			}
		})
	}
}

// Whatever is no duration must not pass as 0, which means "take the default".
func TestDurationJSONRefuses(t *testing.T) {
	for _, in := range []string{
		`"-5"`, `"-1s"`, `"-1ns"`, `"NaN"`, `"Inf"`, `"-Inf"`, `"1e400"`, `"1e30"`, `1e30`, `-1e30`, `9223372036.854775808`, `9223372037`, `"9223372037"`, `-9223372037`, `9.223372036854775808e9`, `""`, `" 5"`,
		`"soon"`, `"none"`, `"5 s"`, `true`, `[]`, `{}`, `"1d"`,
	} {
		t.Run(in, func(t *testing.T) {
			d := schemas.Duration(7)
			err := json.Unmarshal([]byte(in), &d)
			if err == nil || !strings.Contains(err.Error(), "want seconds") || !strings.Contains(err.Error(), strings.Trim(in, `"`)) {
				t.Fatalf("got %v (%v), want an error that names the value and the forms", err, d)
			}
			if d != 7 {
				t.Fatalf("a refused value changed the duration to %v", d)
			}
		})
	}
}

func TestDurationJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := schemas.Duration(rapid.OneOf(
			rapid.Int64(), rapid.Int64Range(0, 1e10), rapid.SampledFrom([]int64{int64(schemas.Unlimited), math.MinInt64, math.MaxInt64}),
		).Draw(t, "d"))
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got schemas.Duration
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Fatalf("got %d, want %d (%s)", got, want, b)
		}
	})
}

// No duration makes the body around it invalid, not even one that no validation would let in.
func TestDurationJSONIsAlwaysANumber(t *testing.T) {
	for _, d := range []schemas.Duration{math.MinInt64, math.MaxInt64, -2, -1500000000} {
		b, err := json.Marshal(d)
		if err != nil || !json.Valid(b) {
			t.Fatalf("%d: got %s, %v", int64(d), b, err)
		}
	}
	if b, _ := json.Marshal(schemas.Duration(math.MinInt64)); string(b) != "-9223372036.854775808" {
		t.Fatalf("got %s", b)
	}
}

// An end that no Timestamp can hold is the last one there is; wrapped around it would be over already.
func TestTimestampAddIsNeverEarlier(t *testing.T) {
	now := schemas.At(time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC))
	for d, want := range map[schemas.Duration]schemas.Timestamp{
		0: now, 5: now + 5, -5: now - 5, math.MaxInt64: math.MaxInt64, math.MaxInt64 - schemas.Duration(now): math.MaxInt64,
		math.MaxInt64 - schemas.Duration(now) - 1: math.MaxInt64 - 1, 1 << 62: now + 1<<62,
	} {
		if got := now.Add(d); got != want {
			t.Errorf("%d: got %d, want %d", int64(d), int64(got), int64(want))
		}
	}
}

func TestDuration(t *testing.T) {
	if got := schemas.Seconds(1.5); got.Std() != 1500*time.Millisecond || got.String() != "1.5s" || !got.Limited() {
		t.Fatalf("got %v", got)
	}
	if u := schemas.Unlimited; u.String() != "NONE" || u.Limited() || schemas.Duration(0).Limited() {
		t.Fatalf("got %v, limited %v", u, u.Limited())
	}
	d := schemas.Duration(5)
	if err := json.Unmarshal([]byte("null"), &d); err != nil || d != 5 {
		t.Fatalf("null: got %v, %v; want it left alone", d, err)
	}
}

func TestSecondsThatAreTooMany(t *testing.T) {
	for n, want := range map[float64]schemas.Duration{
		1e10: math.MaxInt64, math.Inf(1): math.MaxInt64, math.MaxInt64 / 1e9: math.MaxInt64, -1e10: math.MinInt64, math.Inf(-1): math.MinInt64, 9e9: 9e18,
	} {
		if got := schemas.Seconds(n); got != want {
			t.Errorf("%g seconds: got %d, want %d", n, got, want)
		}
	}
	if got := schemas.Seconds(math.NaN()); got != 0 {
		t.Errorf("NaN: got %d, want 0", got)
	}
}

func TestTimestampJSON(t *testing.T) {
	at := func(s string) schemas.Timestamp {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return schemas.At(v)
	}
	for _, tt := range []struct {
		json string
		want schemas.Timestamp
		form string
	}{
		{`null`, 0, `null`},
		{`"2024-05-06T07:08:09Z"`, 1714979289000000000, `"2024-05-06T07:08:09Z"`},
		{`"2024-05-06T07:08:09.000000001Z"`, 1714979289000000001, `"2024-05-06T07:08:09.000000001Z"`},
		{`"2024-05-06T09:08:09+02:00"`, 1714979289000000000, `"2024-05-06T07:08:09Z"`},
		{`"1969-12-31T23:59:59.5Z"`, -500000000, `"1969-12-31T23:59:59.5Z"`},
		{`"0001-01-01T00:00:00Z"`, 0, `null`},
		{`"1700-01-01T00:00:00Z"`, at("1700-01-01T00:00:00Z"), `"1700-01-01T00:00:00Z"`},
		{`"2261-12-31T23:59:59Z"`, at("2261-12-31T23:59:59Z"), `"2261-12-31T23:59:59Z"`},
	} {
		t.Run(tt.json, func(t *testing.T) {
			got := schemas.Timestamp(99)
			if err := json.Unmarshal([]byte(tt.json), &got); err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Fatalf("got %d, want %d", got, tt.want)
			}
			if b, err := json.Marshal(got); err != nil || string(b) != tt.form {
				t.Fatalf("got %s, %v; want %s", b, err, tt.form)
			}
		})
	}
}

func TestTimestampJSONRefuses(t *testing.T) {
	for _, in := range []string{
		`""`, `"yesterday"`, `"2024-05-06"`, `"2024-05-06 07:08:09Z"`, `"2024-05-06T07:08:09"`, `1714979289`, `true`, `{}`,
		`"2024-02-30T00:00:00Z"`, `"9999-12-31T23:59:59Z"`, `"2263-01-01T00:00:00Z"`, `"1600-01-01T00:00:00Z"`,
	} {
		t.Run(in, func(t *testing.T) {
			ts := schemas.Timestamp(7)
			if err := json.Unmarshal([]byte(in), &ts); err == nil || !strings.Contains(err.Error(), "want") {
				t.Fatalf("got %v, %v; want an error that says what is wanted", ts, err)
			}
			if ts != 7 {
				t.Fatalf("a refused value changed the time to %v", ts)
			}
		})
	}
}

func TestTimestampJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := schemas.Timestamp(rapid.Int64().Draw(t, "ts"))
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got schemas.Timestamp
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Fatalf("got %d, want %d (%s)", got, want, b)
		}
	})
}

// A time that no Timestamp can hold stays before, or after, all that one can.
func TestAtIsNeverOnTheOtherSide(t *testing.T) {
	for year, want := range map[int]schemas.Timestamp{
		-5000: math.MinInt64, 2: math.MinInt64, 1677: math.MinInt64, 2263: math.MaxInt64, 9999: math.MaxInt64, 1_000_000: math.MaxInt64,
	} {
		if got := schemas.At(time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC)); got != want {
			t.Errorf("year %d: got %d, want %d", year, got, want)
		}
	}
	for _, want := range []schemas.Timestamp{math.MinInt64, math.MinInt64 + 1, -1, 1, math.MaxInt64 - 1, math.MaxInt64} {
		if got := schemas.At(want.Time()); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
}

func TestTimestamp(t *testing.T) {
	now := time.Date(2024, 5, 6, 9, 8, 9, 123, time.FixedZone("", 7200))
	ts := schemas.At(now)
	if !ts.Time().Equal(now) || ts.Time().Location() != time.UTC {
		t.Fatalf("got %v, want %v in UTC", ts.Time(), now)
	}
	if got := ts.Add(schemas.Seconds(2)).Sub(ts); got != 2*time.Second {
		t.Fatalf("got %v, want 2s", got)
	}
	if !schemas.Timestamp(0).Time().IsZero() || schemas.At(time.Time{}) != 0 {
		t.Fatal("the zero time is not 0")
	}
	if got := ts.String(); got != "2024-05-06T07:08:09.000000123Z" {
		t.Fatalf("got %s", got)
	}
}

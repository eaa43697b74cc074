package backoff_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/backoff"
	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A0-14: the forms of limits.
func TestParseLimit(t *testing.T) {
	for text, want := range map[string]backoff.Limit{
		"10":         {Count: 10, Counted: true},
		"0":          {Counted: true},
		"1h":         {Within: time.Hour},
		"7d":         {Within: 7 * day},
		"1h 30m":     {Within: 90 * time.Minute},
		"2 weeks":    {Within: 14 * day},
		"2 in 5s":    {Count: 2, Within: 5 * sec, Counted: true},
		"2 in 1 min": {Count: 2, Within: time.Minute, Counted: true},
		" 2  in 1m ": {Count: 2, Within: time.Minute, Counted: true},
	} {
		got, err := backoff.ParseLimit(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v, -want +got\n%s", text, err, diff)
		}
		if again, err := backoff.ParseLimit(got.String()); err != nil || again != got {
			t.Errorf("%q: written as %q, read as %v, %v", text, got, again, err)
		}
	}
	for _, tc := range []struct {
		text   string
		offset int
		want   string
	}{
		{"", 0, "is empty"},
		{"-1", 0, "is negative"},
		{"-1 in 5s", 0, "is negative"},
		{"1.5", 3, "no unit"},
		{"2 in", 4, "after in is missing"},
		{"2 in 0s", 5, "within no time"},
		{"2 in 5", 6, "no unit"},
		{"2 at 5s", 2, `"at" is no unit`},
		{"1001 in 1h", 0, "at most 1000 retries"},
		{"many", 0, "does not begin with a number"},
		{"10 1h", 2, "no unit"},
	} {
		got, err := backoff.ParseLimit(tc.text)
		e, ok := errors.AsType[*syntax.Error](err)
		if !ok || e.Offset != tc.offset || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: got %v, %v, want offset %d and %q", tc.text, got, err, tc.offset, tc.want)
		}
	}
}

var start = time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)

func limits(t *testing.T, texts ...string) []backoff.Limit {
	t.Helper()
	var out []backoff.Limit
	for _, text := range texts {
		l, err := backoff.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

// A0-14: how the recorded times are judged. N retries allowed are N+1 attempts.
func TestReached(t *testing.T) {
	for _, tc := range []struct {
		limits  []string
		retries []time.Duration // since the start
		now     time.Duration
		want    string // the limit that is reached
	}{
		{[]string{"2"}, nil, 0, ""},
		{[]string{"2"}, []time.Duration{0}, 1, ""},
		{[]string{"2"}, []time.Duration{0, 1}, 2, "2"},
		{[]string{"0"}, nil, 0, "0"},
		{[]string{"1h"}, nil, day, ""},
		{[]string{"1h"}, []time.Duration{0}, time.Hour - 1, ""},
		{[]string{"1h"}, []time.Duration{0}, time.Hour, "1h"},
		{[]string{"2 in 5s"}, []time.Duration{0}, sec, ""},
		{[]string{"2 in 5s"}, []time.Duration{0, sec}, 5 * sec, "2 in 5s"},
		{[]string{"2 in 5s"}, []time.Duration{0, sec}, 5*sec + 1, ""},
		{[]string{"2 in 5s"}, []time.Duration{0, 10 * sec, 20 * sec, 30 * sec}, 31 * sec, ""},
		{[]string{"10", "1h", "2 in 1m"}, []time.Duration{0, sec}, 2 * sec, "2 in 1m"},
		{[]string{"10", "1h", "2 in 1m"}, []time.Duration{0, time.Minute}, 2*time.Minute + 1, ""},
		{nil, []time.Duration{0, 1, 2}, 3, ""},
	} {
		l := limits(t, tc.limits...)
		var r backoff.Records
		for _, at := range tc.retries {
			r = r.Add(start.Add(at), l)
		}
		got := ""
		if hit, ok := r.Reached(l, start.Add(tc.now)); ok {
			got = hit.String()
		}
		if got != tc.want {
			t.Errorf("%v with retries at %v, now %v: got %q, want %q", tc.limits, tc.retries, tc.now, got, tc.want)
		}
	}
}

func TestExpired(t *testing.T) {
	one := backoff.Records{}.Add(start, nil)
	for _, tc := range []struct {
		records backoff.Records
		timeout time.Duration
		now     time.Duration
		want    bool
	}{
		{backoff.Records{}, time.Minute, day, false},
		{one, time.Minute, time.Minute, false},
		{one, time.Minute, time.Minute + 1, true},
		{one, 0, day, false},
	} {
		if got := tc.records.Expired(tc.timeout, start.Add(tc.now)); got != tc.want {
			t.Errorf("%v after %v with timeout %v: got %v, want %v", tc.records, tc.now, tc.timeout, got, tc.want)
		}
	}
}

// The bounded records answer as the list of all times does, through JSON and back.
func TestRecordsAgainstAllTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l []backoff.Limit
		for _, text := range rapid.SliceOfN(rapid.SampledFrom([]string{"0", "3", "7", "30s", "2m", "1 in 5s", "3 in 20s", "5 in 1m"}), 0, 3).Draw(t, "limits") {
			one, err := backoff.ParseLimit(text)
			if err != nil {
				t.Fatal(err)
			}
			l = append(l, one)
		}
		now := start
		var all []time.Time
		var r backoff.Records
		for range rapid.IntRange(0, 12).Draw(t, "retries") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "gap")) * time.Second)
			before := cmp.Diff(r, backoff.Records{})
			next := r.Add(now, l)
			if cmp.Diff(r, backoff.Records{}) != before {
				t.Fatal("Add changed the old records")
			}
			all = append(all, now)
			data, err := json.Marshal(next)
			if err != nil {
				t.Fatal(err)
			}
			r = backoff.Records{}
			if err := json.Unmarshal(data, &r); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "wait")) * time.Second)
		want, wantHit := firstReached(l, all, now)
		if got, hit := r.Reached(l, now); got != want || hit != wantHit {
			t.Fatalf("got %v, %v, want %v, %v", got, hit, want, wantHit)
		}
		if len(r.Recent) > 5 {
			t.Fatalf("got %d times, want those of the largest window only", len(r.Recent))
		}
	})
}

func firstReached(limits []backoff.Limit, all []time.Time, now time.Time) (backoff.Limit, bool) {
	for _, l := range limits {
		within := 0
		for _, t := range all {
			if !t.Before(now.Add(-l.Within)) {
				within++
			}
		}
		var hit bool
		switch {
		case !l.Counted:
			hit = len(all) > 0 && !all[0].After(now.Add(-l.Within))
		case l.Within == 0:
			hit = len(all) >= l.Count
		default:
			hit = within >= l.Count
		}
		if hit {
			return l, true
		}
	}
	return backoff.Limit{}, false
}

func TestRecordsStaySmall(t *testing.T) {
	l := limits(t, "1000 in 1h")
	var r backoff.Records
	for i := range 3000 {
		r = r.Add(start.Add(time.Duration(i)), l)
	}
	if r.Count != 3000 || len(r.Recent) != backoff.MaxWindow {
		t.Errorf("got count %d and %d times, want 3000 and %d", r.Count, len(r.Recent), backoff.MaxWindow)
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, s := range []string{"10", "1h", "2 in 5s", "in", "2 in", "99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := backoff.ParseLimit(text)
		if err != nil {
			if e, ok := errors.AsType[*syntax.Error](err); !ok || e.Offset > len(text) {
				t.Fatalf("%q: got %#v", text, err)
			}
			return
		}
		if again, err := backoff.ParseLimit(l.String()); err != nil || again != l {
			t.Fatalf("%q: got %v, %v", l, again, err)
		}
	})
}

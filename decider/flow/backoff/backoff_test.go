package backoff_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/backoff"
	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	ms  = time.Millisecond
	sec = time.Second
	day = 24 * time.Hour
)

// A0-14: the grammar of backoffs.
func TestParse(t *testing.T) {
	type b = backoff.Backoff
	s := func(d ...time.Duration) []time.Duration { return d }
	for text, want := range map[string]b{
		"10ms":                       {Initial: s(10 * ms)},
		"1s 1s 10s":                  {Initial: s(sec, sec, 10*sec)},
		"1m 30s":                     {Initial: s(time.Minute, 30*sec)},
		"1m30s":                      {Initial: s(90 * sec)},
		"0s":                         {Initial: s(0)},
		"10s increasing 2x":          {Initial: s(10 * sec), Factor: 2},
		"10s increasing 1.5x":        {Initial: s(10 * sec), Factor: 1.5},
		"10s increasing 0.5x":        {Initial: s(10 * sec), Factor: 0.5},
		"10s increasing 50%":         {Initial: s(10 * sec), Factor: 1.5},
		"10s increasing -50%":        {Initial: s(10 * sec), Factor: 0.5},
		"10s increasing 5s":          {Initial: s(10 * sec), Step: 5 * sec},
		"10s increasing 2x up to 5m": {Initial: s(10 * sec), Factor: 2, Max: 5 * time.Minute}, // the approval example
		"10s increasing 2x max 1m":   {Initial: s(10 * sec), Factor: 2, Max: time.Minute},     // the provisioning example
		"1s up to 5s jitter 10%":     {Initial: s(sec), Max: 5 * sec, Jitter: 0.1},
		"1s jitter 10% up to 5s":     {Initial: s(sec), Max: 5 * sec, Jitter: 0.1},
		"1s jitter -100%":            {Initial: s(sec), Jitter: -1},
		"1s jitter 0.5":              {Initial: s(sec), Jitter: 0.5},
		" 1s  2s\tmax 1m increasing 3x jitter -1": {Initial: s(sec, 2*sec), Factor: 3, Max: time.Minute, Jitter: -1},
	} {
		got, err := backoff.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", text, diff)
		}
		again, err := backoff.Parse(got.String())
		if diff := cmp.Diff(got, again); err != nil || diff != "" {
			t.Errorf("%s: written as %q: %v, -want +got\n%s", text, got, err, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct {
		text   string
		offset int
		want   string
	}{
		{"", 0, "a delay is missing"},
		{"  ", 2, "a delay is missing"},
		{"increasing 2x", 0, "a delay is missing"},
		{"1", 1, "no unit"},
		{"1 min", 1, "no unit"},
		{"-1s", 0, "negative"},
		{"1s limit 5", 3, "a limit of a retry stands before its backoff"},
		{"1s \"\"", 3, "does not belong here"},
		{"soon", 0, "does not begin with a number"},
		{"1s increasing", 13, "value of increasing is missing"},
		{"1s increasing 2", 14, "has no unit"},
		{"1s increasing 0x", 14, "no factor"},
		{"1s increasing -2x", 14, "no factor"},
		{"1s increasing infx", 14, "no factor"},
		{"1s increasing 1e9x", 14, "no factor"},
		{"1s increasing -100%", 14, "no percentage"},
		{"1s increasing soon", 14, "does not begin with a number"},
		{"1s increasing 2x increasing 3x", 17, "occurs twice"},
		{"1s max 1m up to 2m", 10, "occurs twice"},
		{"1s up 5s", 3, "does not belong here"},
		{"1s to 5s", 3, "does not belong here"},
		{"1s max 0s", 7, "a limit of zero"},
		{"1s jitter", 9, "value of jitter is missing"},
		{"1s jitter x", 10, "no jitter"},
		{"1s jitter -101%", 10, "no jitter"},
		{"1s jitter NaN", 10, "no jitter"},
		{"1s max 1m 2s", 10, "does not belong here"},
		{"4000d", 0, "too long"},
		{strings.Repeat("1s ", 101), 300, "too many delays"},
		{`"1s`, 0, "not closed"},
	} {
		got, err := backoff.Parse(tc.text)
		e, ok := errors.AsType[*syntax.Error](err)
		if !ok || e.Offset != tc.offset || !strings.Contains(err.Error(), tc.want) || e.Hint == "" {
			t.Errorf("%.40q: got %v, %v, want offset %d, %q and a hint", tc.text, got, err, tc.offset, tc.want)
		}
	}
}

// A0-14: the delays of section 9.4.
func TestDelay(t *testing.T) {
	for _, tc := range []struct {
		text   string
		random float64
		want   []time.Duration
	}{
		{"10ms", 0.5, []time.Duration{10 * ms, 10 * ms, 10 * ms}},
		{"1s 1s 10s", 0.5, []time.Duration{sec, sec, 10 * sec, 10 * sec, 10 * sec}},
		{"10s increasing 2x up to 5m", 0.5, []time.Duration{10 * sec, 20 * sec, 40 * sec, 80 * sec, 160 * sec, 300 * sec, 300 * sec}},
		{"1s 2s increasing 3x max 1m", 0.5, []time.Duration{sec, 2 * sec, 6 * sec, 18 * sec, 54 * sec, time.Minute, time.Minute}},
		{"10s increasing 50%", 0.5, []time.Duration{10 * sec, 15 * sec, 22500 * ms}},
		{"10s increasing 5s", 0.5, []time.Duration{10 * sec, 15 * sec, 20 * sec, 25 * sec}},
		{"8s increasing 0.5x", 0.5, []time.Duration{8 * sec, 4 * sec, 2 * sec}},
		{"10s jitter 10%", 0, []time.Duration{10 * sec, 10 * sec}},
		{"10s jitter 10%", 0.5, []time.Duration{10500 * ms, 10500 * ms}},
		{"10s jitter -100%", 0.75, []time.Duration{2500 * ms, 2500 * ms}},
		{"10s jitter 100% up to 12s", 0.5, []time.Duration{8 * sec, 8 * sec}},                  // 12s / 1.5
		{"10s increasing 2x up to 12s jitter -50%", 0.5, []time.Duration{7500 * ms, 12 * sec}}, // 15s is cut; 12s / 0.75 would be more than 12s
		{"0s increasing 2x", 0.5, []time.Duration{0, 0, 0}},
		{"1m up to 10s", 0.5, []time.Duration{10 * sec, 10 * sec}},
	} {
		b, err := backoff.Parse(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		var got []time.Duration
		for k := range tc.want {
			got = append(got, b.Delay(k, tc.random).Round(time.Microsecond))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", tc.text, diff)
		}
	}
	var none *backoff.Backoff
	if got := none.Delay(3, 0.5) + (&backoff.Backoff{}).Delay(3, 0.5); got != 0 {
		t.Errorf("got %v without a backoff, want 0", got)
	}
}

func anyBackoff() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"0s", "10ms", "1s", "1m30s", "7d", "3000d"}), 1, 4).Draw(t, "initial")
		for _, option := range rapid.Permutation([]string{"increasing", "up to", "jitter"}).Draw(t, "options") {
			values := map[string][]string{
				"increasing": {"", "2x", "0.1x", "1000000x", "50%", "-99%", "10s"},
				"up to":      {"", "1ns", "30s", "3650d"},
				"jitter":     {"", "0", "10%", "-100%", "3", "-0.5"},
			}[option]
			if v := rapid.SampledFrom(values).Draw(t, option); v != "" {
				parts = append(parts, option, v)
			}
		}
		return strings.Join(parts, " ")
	})
}

// A delay is bounded whatever k and the random number are, is the same each time, and without growth and jitter is one that was listed.
func TestDelayIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := backoff.Parse(anyBackoff().Draw(t, "text"))
		if err != nil {
			t.Fatal(err)
		}
		k := rapid.OneOf(rapid.IntRange(-1, 10), rapid.Int()).Draw(t, "k")
		random := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "random")
		got := b.Delay(k, random)
		if got < 0 || got > backoff.Longest || b.Max > 0 && got > b.Max {
			t.Fatalf("got %v for k %d and random %v", got, k, random)
		}
		if again := b.Delay(k, random); again != got {
			t.Fatalf("got %v and %v", got, again)
		}
	})
}

// The closed form against repeated steps.
func TestDelayAgainstSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := backoff.Parse(anyBackoff().Draw(t, "text"))
		if err != nil {
			t.Fatal(err)
		}
		b.Jitter = 0
		limit := float64(backoff.Longest)
		if b.Max > 0 {
			limit = float64(b.Max)
		}
		grown := float64(b.Initial[0])
		for k := range 20 {
			if k < len(b.Initial) {
				grown = float64(b.Initial[k])
			} else {
				if b.Factor != 0 {
					grown *= b.Factor
				}
				grown += float64(b.Step)
			}
			want := min(grown, limit)
			if got := float64(b.Delay(k, 0.5)); math.Abs(got-want) > 1+want*1e-9 {
				t.Fatalf("k %d: got %v, want %v", k, got, want)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"1s 2s increasing 2x up to 5m jitter 10%", "10s increasing 50% max 1m", "1s jitter -1", "1m 30s", "up to", "1s increasing 1e5x", "1s jitter --1%"} {
		f.Add(s, 7, 0.3)
	}
	f.Fuzz(func(t *testing.T, text string, k int, random float64) {
		b, err := backoff.Parse(text)
		if err != nil {
			if e, ok := errors.AsType[*syntax.Error](err); !ok || e.Offset > len(text) {
				t.Fatalf("%q: got %#v", text, err)
			}
			return
		}
		again, err := backoff.Parse(b.String())
		if diff := cmp.Diff(b, again); err != nil || diff != "" {
			t.Fatalf("%q: %v, -want +got\n%s", b, err, diff)
		}
		if random < 0 || random >= 1 || math.IsNaN(random) {
			return
		}
		if got := b.Delay(k, random); got < 0 || got > backoff.Longest || b.Max > 0 && got > b.Max {
			t.Fatalf("%q: got %v", text, got)
		}
	})
}

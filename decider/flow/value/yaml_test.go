package value_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/value"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFromYAML(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a: &a [x, x, x, x, x, x, x, x, x, x]\n")
	for c := 'b'; c < 'k'; c++ {
		bomb.WriteString(string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+", ", 9) + "*" + string(c-1) + "]\n")
	}
	for _, tc := range []struct {
		text string
		want any
	}{
		{"", nil},
		{"  \n", nil},
		{"5", int64(5)},
		{"0x10", int64(16)},
		{"1_000", int64(1000)},
		{"5.0", 5.0},
		{"1e3", 1000.0},
		{"true", true},
		{"False", false},
		{"~", nil},
		{`"5"`, "5"},
		{"2026-03-29", "2026-03-29"},
		{"a: 1\nb: [x, 2.5]", dict{"a": int64(1), "b": list{"x", 2.5}}},
		{"1: x", dict{"1": "x"}},
		{"a: &x [1]\nb: *x", dict{"a": list{int64(1)}, "b": list{int64(1)}}},
		{`{"a": [null, {"b": "c"}]}`, dict{"a": list{nil, dict{"b": "c"}}}},
		{"99999999999999999999", problem("quotes")},
		{"18446744073709551615", problem("quotes")},
		{".nan", problem("none of a flow")},
		{".inf", problem("none of a flow")},
		{"a: 1\na: 2", problem("occurs twice")},
		{"? [a]\n: b", problem("no plain text")},
		{"a: &x {b: 1}\nc: {<<: *x}", problem("no plain text")},
		{"&a [*a]", problem("inside each other")},
		{"!!binary aGk=", problem("no meaning")},
		{"a: b: c", problem("read YAML")},
		{"--- a\n--- b", problem("more than one document")},
		{"a\n...\n}", problem("more than one document")},
		{bomb.String(), problem("too many bytes")},
		{strings.Repeat("[", 200) + strings.Repeat("]", 200), problem("inside each other")},
		{strings.Repeat("- ", 20000), problem("")},
	} {
		got, err := value.FromYAML(tc.text, value.Limits{})
		if want, ok := tc.want.(problem); ok {
			if err == nil || !strings.Contains(err.Error(), string(want)) {
				t.Errorf("%.60q: got %v, %v, want %q", tc.text, got, err, want)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%.60q: %v, -want +got\n%s", tc.text, err, diff)
		}
	}
	if _, err := value.FromYAML(strings.Repeat("x", 900), value.Limits{Bytes: 100}); !errors.Is(err, value.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
}

func TestToYAML(t *testing.T) {
	got, err := value.ToYAML(dict{"b": list{int64(1), 2.0, "2"}, "a": nil, "d": 90 * time.Second})
	if want := "a: null\nb:\n    - 1\n    - 2.0\n    - \"2\"\nd: 1m30s\n"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if got, err := value.ToYAML(list{7}); err == nil {
		t.Errorf("got %q, want an error", got)
	}
}

// What is written as YAML is read back, durations and instants as text.
func TestYAMLBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values().Draw(t, "v")
		text, err := value.ToYAML(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := value.FromYAML(text, value.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		plain, err := value.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		want, err := value.Decode(plain, value.Limits{})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("%s: %v, -want +got\n%s", text, err, diff)
		}
	})
}

func FuzzYAML(f *testing.F) {
	for _, s := range []string{"a: [1, x]", "&a [*a]", "{<<: 1}", "0x1p3", "- - -", "\x00", "!!str 5", "? a", "1e5", "+.5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := value.FromYAML(text, value.Limits{Bytes: 1 << 12})
		if err != nil {
			return
		}
		if _, err := value.Encode(v); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

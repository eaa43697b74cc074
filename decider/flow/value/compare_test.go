package value_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/value"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestEqual(t *testing.T) {
	for _, tc := range []struct {
		a, b any
		want bool
	}{
		{nil, nil, true},
		{nil, "", false},
		{nil, int64(0), false},
		{nil, false, false},
		{int64(5), 5.0, true},
		{int64(5), "5.0", true},
		{5.0, "5", true},
		{int64(5), " 5\n", true},
		{"5", "5.0", false},
		{"a", "a", true},
		{"a", "A", false},
		{int64(5), "five", false},
		{true, "true", true},
		{true, "yes", true},
		{false, "No", true},
		{true, int64(1), false},
		{true, "1", false},
		{90 * time.Second, "1m 30s", true},
		{90 * time.Second, "90", false},
		{90 * time.Second, int64(90), false},
		{noon, "2026-03-29T12:00:00.0000005Z", true},
		{noon, "2026-03-29T13:00:00.0000005+01:00", true},
		{noon, "2026-03-29", false},
		{list{int64(1), "a"}, list{"1", "a"}, true},
		{list{int64(1)}, list{int64(1), int64(2)}, false},
		{list{int64(1), int64(2)}, list{int64(2), int64(1)}, false},
		{list{}, "", false},
		{list{}, nil, false},
		{dict{"a": int64(1)}, dict{"a": 1.0}, true},
		{dict{"a": int64(1)}, dict{"b": int64(1)}, false},
		{dict{"a": nil}, dict{"b": nil}, false},
		{dict{}, list{}, false},
		{int64(math.MaxInt64), float64(math.MaxInt64), false},
		{int64(1<<53 + 1), float64(1 << 53), false},
	} {
		if got := value.Equal(tc.a, tc.b); got != tc.want {
			t.Errorf("%#v, %#v: got %v, want %v", tc.a, tc.b, got, tc.want)
		}
		if got := value.Equal(tc.b, tc.a); got != tc.want {
			t.Errorf("%#v, %#v: got %v, want %v", tc.b, tc.a, got, tc.want)
		}
	}
}

func TestCompare(t *testing.T) {
	const no = 9 // cannot be ordered
	for _, tc := range []struct {
		a, b any
		want int
	}{
		{int64(1), int64(2), -1},
		{int64(1), 1.5, -1},
		{int64(2), 1.5, 1},
		{int64(-2), -1.5, -1},
		{int64(1), 1.0, 0},
		{int64(math.MaxInt64), 1e300, -1},
		{int64(math.MinInt64), -1e300, 1},
		{int64(math.MaxInt64), float64(math.MaxInt64), -1},
		{int64(math.MinInt64), float64(math.MinInt64), 0},
		{int64(9), "10", -1},
		{9.5, "9.4", 1},
		{int64(9), "ten", no},
		{"9", "10", -1},
		{"v1.9", "v1.10", -1},
		{"a", "b", -1},
		{"a", "a1", -1},
		{"a1b", "a1", 1},
		{"", "a", -1},
		{"01", "1", -1},
		{"1", "1", 0},
		{"1.5", "1.25", -1}, // like versions, not like numbers
		{90 * time.Second, "2m", -1},
		{90 * time.Second, 2 * time.Minute, -1},
		{90 * time.Second, "soon", no},
		{90 * time.Second, int64(100), no},
		{noon, noon.Add(1), -1},
		{noon, "2026-03-29T11:59:59Z", 1},
		{noon, "today", no},
		{noon, time.Second, no},
		{nil, nil, no},
		{nil, int64(0), no},
		{nil, "", no},
		{true, false, no},
		{true, int64(1), no},
		{list{}, list{}, no},
		{dict{}, int64(1), no},
		{int64(1), math.NaN(), no},
		{math.NaN(), math.NaN(), no},
	} {
		for _, turned := range []bool{false, true} {
			a, b, want := tc.a, tc.b, tc.want
			if turned {
				a, b = b, a
				if want != no {
					want = -want
				}
			}
			got, ok := value.Compare(a, b)
			if ok != (want != no) || ok && got != want {
				t.Errorf("%#v, %#v: got %d, %v, want %d", a, b, got, ok, want)
			}
		}
	}
}

// The order of texts is total, and that of any three values that can be ordered has no circle.
func TestNaturalIsAnOrder(t *testing.T) {
	texts := rapid.OneOf(rapid.StringMatching(`([ab0-2]|0|10){0,6}`), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := texts.Draw(t, "a"), texts.Draw(t, "b"), texts.Draw(t, "c")
		ab, ba, bc, ac := value.Natural(a, b), value.Natural(b, a), value.Natural(b, c), value.Natural(a, c)
		switch {
		case ab != -ba:
			t.Fatalf("got %d and %d", ab, ba)
		case (ab == 0) != (a == b):
			t.Fatalf("got %d for texts of which equal is %v", ab, a == b)
		case ab <= 0 && bc <= 0 && ac > 0:
			t.Fatalf("got %d, %d, %d", ab, bc, ac)
		}
	})
}

// Natural against the dumb way: digits padded to the same width.
func TestNaturalAgainstPadding(t *testing.T) {
	pad := func(s string) string {
		var b strings.Builder
		for i := 0; i < len(s); {
			end := i
			for end < len(s) && '0' <= s[end] && s[end] <= '9' {
				end++
			}
			if end == i {
				b.WriteByte(s[i])
				i++
				continue
			}
			b.WriteString(strings.Repeat("0", 20-(end-i)) + s[i:end])
			i = end
		}
		return b.String()
	}
	texts := rapid.StringMatching(`[a-c0-9]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := texts.Draw(t, "a"), texts.Draw(t, "b")
		want := strings.Compare(pad(a), pad(b))
		if got := value.Natural(a, b); want != 0 && got != want {
			t.Fatalf("%q, %q: got %d, want %d", a, b, got, want)
		}
	})
}

func TestEqualIsSymmetricAndKnowsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := values().Draw(t, "a"), values().Draw(t, "b")
		if value.Equal(a, b) != value.Equal(b, a) {
			t.Fatal("not symmetric")
		}
		if !value.Equal(a, a) || !value.Equal(a, copied(a)) {
			t.Fatal("not equal to itself")
		}
		if c, ok := value.Compare(a, b); ok && (c == 0) != value.Equal(a, b) {
			t.Fatalf("ordered as %d, equal is %v", c, value.Equal(a, b))
		}
	})
}

func TestTruth(t *testing.T) {
	for _, v := range []any{nil, false, int64(0), 0.0, math.Copysign(0, -1), "", list{}, dict{}} {
		if value.Truth(v) {
			t.Errorf("%#v: got true", v)
		}
	}
	for _, v := range []any{true, int64(1), -0.5, "false", "0", " ", list{nil}, dict{"": nil}, time.Duration(0), "0s", noon} {
		if !value.Truth(v) {
			t.Errorf("%#v: got false", v)
		}
	}
}

func TestCoerce(t *testing.T) {
	for _, tc := range []struct {
		in   any
		name string
		want any // an error is the text it has to contain, as type problem
	}{
		{"5", "integer", int64(5)},
		{" -5\n", "integer", int64(-5)},
		{"007", "integer", int64(7)},
		{5.0, "integer", int64(5)},
		{"5.0", "integer", int64(5)},
		{1.5, "integer", problem("not whole")},
		{"1.5", "integer", problem("not whole")},
		{1e19, "integer", problem("does not fit")},
		{"9223372036854775808", "integer", problem(`the string "9223372036854775808" is no integer: it does not fit 64 bits`)},
		{"five", "integer", problem(`the string "five" is no integer`)},
		{true, "integer", problem("the boolean")},
		{"+5", "integer", problem("no integer")},
		{"", "integer", problem("no integer")},
		{"1e", "integer", problem("no integer")},
		{"1.", "integer", problem("no integer")},
		{"1.5x", "double", problem("no double")},
		{"1.5", "double", 1.5},
		{"1e3", "double", 1000.0},
		{"1E-2", "double", 0.01},
		{int64(2), "double", 2.0},
		{dict{}, "double", problem("a map is no double")},
		{"TRUE", "boolean", true},
		{"no", "boolean", false},
		{false, "boolean", false},
		{int64(1), "boolean", problem("no boolean")},
		{"on", "boolean", problem("write true or false")},
		{int64(5), "string", "5"},
		{2.0, "string", "2.0"},
		{true, "string", "true"},
		{90 * time.Second, "string", "1m30s"},
		{noon, "string", "2026-03-29T12:00:00.0000005Z"},
		{list{}, "string", problem("json encode")},
		{"1m 30s", "duration", 90 * time.Second},
		{"-1m", "duration", -time.Minute},
		{time.Second, "duration", time.Second},
		{int64(5), "duration", problem("with a unit")},
		{"5", "duration", problem("no unit")},
		{"forever", "duration", problem("not allowed")},
		{"2026-03-29T12:00:00.0000005Z", "instant", noon},
		{noon, "instant", noon},
		{"2026-03-29", "instant", problem("no instant")},
		{int64(5), "instant", problem("no instant")},
		{"[1, a]", "list", list{int64(1), "a"}},
		{list{}, "list", list{}},
		{"{a: 1}", "list", problem("no list")},
		{"a,b", "list", problem("no list")},
		{int64(1), "list", problem("no list")},
		{"{ a: 1, b: [x] }", "map", dict{"a": int64(1), "b": list{"x"}}},
		{dict{"a": nil}, "map", dict{"a": nil}},
		{"{a: ", "map", problem("no map")},
		{list{}, "map", problem("a list is no map")},
		{nil, "string", problem("null is no string")},
		{nil, "map", problem("null is no map")},
		{"5", "int", problem("there is no type")},
		{"5", "integr", problem("did you mean integer")},
	} {
		got, err := value.Coerce(tc.in, tc.name, value.Limits{})
		if want, ok := tc.want.(problem); ok {
			if err == nil || !strings.Contains(err.Error(), string(want)) {
				t.Errorf("%#v as %s: got %v, %v, want %q", tc.in, tc.name, got, err, want)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%#v as %s: %v, -want +got\n%s", tc.in, tc.name, err, diff)
		}
	}
}

type problem string

func TestTypes(t *testing.T) {
	for _, name := range []string{"integer", "double", "boolean", "string", "map", "list", "duration", "instant"} {
		if err := value.CheckType(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := value.TypeName(int64(1)) + value.TypeName(nil) + value.TypeName(7); got != "integernullint" {
		t.Errorf("got %s", got)
	}
}

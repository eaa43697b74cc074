package value_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/value"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type (
	list = []any
	dict = map[string]any
)

var noon = time.Date(2026, 3, 29, 12, 0, 0, 500, time.UTC)

// nasty are texts that mean something in YAML.
var nasty = rapid.StringMatching(`[ \n\t\r#:'"a5~|>&*!%@,?{}\[\]-]{0,8}`)

// values makes values of all types; texts are often numbers, durations or near each other.
func values() *rapid.Generator[any] {
	scalars := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.Int64().AsAny(),
		rapid.Int64Range(-3, 3).AsAny(),
		rapid.Float64().AsAny(),
		rapid.SampledFrom([]float64{0, -0.5, 1, 2.5, 1e300, 1 << 53}).AsAny(),
		rapid.String().AsAny(),
		nasty.AsAny(),
		rapid.SampledFrom([]string{"", "1", "01", "1.0", "9", "10", "v1.9", "v1.10", "1e3", "90s", "2m", "true", "$duration", " 5 "}).AsAny(),
		rapid.Map(rapid.Int64Range(-math.MaxInt64+1, math.MaxInt64-1), func(n int64) any { return time.Duration(n) }),
		rapid.Map(rapid.Int64Range(-1<<33, 1<<33), func(n int64) any { return time.Unix(n, n&0xffff).UTC() }),
	)
	nest := func(of *rapid.Generator[any]) *rapid.Generator[any] {
		return rapid.OneOf(of,
			rapid.Map(rapid.SliceOfN(of, 0, 3), func(l []any) any { return append(list{}, l...) }),
			rapid.Map(rapid.MapOfN(rapid.OneOf(rapid.String(), nasty, rapid.SampledFrom([]string{"a", "$duration", "$instant", "$$", "a b"})), of, 0, 3),
				func(m map[string]any) any { return m }))
	}
	return nest(nest(scalars))
}

func TestOf(t *testing.T) {
	for _, tc := range []struct {
		in, want any
		problem  string
	}{
		{in: nil, want: nil},
		{in: 7, want: int64(7)},
		{in: int8(-7), want: int64(-7)},
		{in: uint16(7), want: int64(7)},
		{in: uint64(1 << 62), want: int64(1 << 62)},
		{in: uint64(1 << 63), problem: "does not fit 64 bits"},
		{in: float32(0.5), want: 0.5},
		{in: math.NaN(), problem: "no number"},
		{in: math.Inf(1), problem: "no number"},
		{in: json.Number("12"), want: int64(12)},
		{in: json.Number("12.0"), want: 12.0},
		{in: json.Number("9223372036854775808"), problem: "does not fit 64 bits"},
		{in: json.Number("1e999"), problem: "too large"},
		{in: "a\xffb", problem: "not valid UTF-8"},
		{in: []byte("x"), problem: "is no value of a flow"},
		{in: struct{}{}, problem: "is no value of a flow"},
		{in: []string{"a", "b"}, want: list{"a", "b"}},
		{in: map[any]any{"a": 1, 2: true}, want: dict{"a": int64(1), "2": true}},
		{in: map[any]any{"2": 1, 2: 1}, problem: "the same text"},
		{in: map[any]any{nil: 1}, problem: "a key of a map"},
		{in: map[string]any{"\xff": 1}, problem: "not valid UTF-8"},
		{in: map[string]string{"a": "b"}, want: dict{"a": "b"}},
		{in: list{list{struct{}{}}}, problem: "is no value of a flow"},
		{in: 5 * time.Second, want: 5 * time.Second},
		{in: time.Duration(math.MaxInt64), problem: "too long"},
		{in: noon.In(time.FixedZone("x", 3600)), want: noon},
		{in: noon.AddDate(9000, 0, 0), problem: "years go from 0 to 9999"},
	} {
		got, err := value.Of(tc.in, value.Limits{})
		if tc.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%#v: got %v, %v, want %q", tc.in, got, err, tc.problem)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%#v: %v, -want +got\n%s", tc.in, err, diff)
		}
	}
}

func TestLimits(t *testing.T) {
	deep := any("x")
	for range 65 {
		deep = list{deep}
	}
	wide := make(list, 1<<17)
	for name, v := range map[string]any{"deep": deep, "wide": wide, "text": strings.Repeat("x", 1<<20), "keys": dict{strings.Repeat("k", 1<<20): nil}} {
		if _, err := value.Of(v, value.Limits{}); !errors.Is(err, value.ErrLimit) {
			t.Errorf("Of %s: got %v, want ErrLimit", name, err)
		}
		if err := value.Check(v, value.Limits{}); !errors.Is(err, value.ErrLimit) {
			t.Errorf("Check %s: got %v, want ErrLimit", name, err)
		}
		if err := value.Check(v, value.Limits{Bytes: 1 << 22, Depth: 100}); err != nil {
			t.Errorf("Check %s with more: got %v", name, err)
		}
	}
	if _, err := value.Decode([]byte(strings.Repeat("[", 5000)+strings.Repeat("]", 5000)), value.Limits{}); !errors.Is(err, value.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
	if _, err := value.Decode(make([]byte, 1000), value.Limits{Bytes: 100}); !errors.Is(err, value.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
}

func TestCheckAgreesWithSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values().Draw(t, "v")
		n := value.Size(v)
		if err := value.Check(v, value.Limits{Bytes: n}); err != nil {
			t.Fatalf("size %d: %v", n, err)
		}
		if err := value.Check(v, value.Limits{Bytes: n - 1}); !errors.Is(err, value.ErrLimit) {
			t.Fatalf("size %d: got %v with a byte less, want ErrLimit", n, err)
		}
	})
}

func TestEncode(t *testing.T) {
	v := dict{"i": int64(math.MaxInt64), "f": 1.0, "e": 1e21, "s": "<&>\n\x01\u2028ä", "d": 90 * time.Second, "t": noon, "l": list{nil, true}, "m": dict{}}
	got, err := value.Encode(v)
	want := `{"d":"1m30s","e":1e+21,"f":1.0,"i":9223372036854775807,"l":[null,true],"m":{},"s":"<&>\n\u0001` + "\u2028ä" + `","t":"2026-03-29T12:00:00.0000005Z"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
	back, err := value.Decode(got, value.Limits{})
	v["d"], v["t"] = "1m30s", "2026-03-29T12:00:00.0000005Z"
	if diff := cmp.Diff(any(v), back); err != nil || diff != "" {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
	for _, bad := range []any{math.NaN(), "\xff", dict{"\xff": nil}, 7, list{struct{}{}}, time.Duration(math.MaxInt64), noon.AddDate(9000, 0, 0)} {
		if got, err := value.Encode(bad); err == nil {
			t.Errorf("%#v: got %s, want an error", bad, got)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "decode JSON",
		"{":                   "decode JSON",
		"1 2":                 "more follows",
		"\"\xff\"":            "UTF-8",
		"9223372036854775808": "does not fit 64 bits",
		"[1e400]":             "too large",
	} {
		if got, err := value.Decode([]byte(text), value.Limits{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want %q", text, got, err, want)
		}
	}
}

func TestPackKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values().Draw(t, "v")
		packed, err := value.Pack(v)
		if err != nil {
			t.Fatal(err)
		}
		back, err := value.Unpack(packed, value.Limits{})
		if diff := cmp.Diff(v, back); err != nil || diff != "" {
			t.Fatalf("%s: %v, -want +got\n%s", packed, err, diff)
		}
	})
}

// What is as large as it may be is kept too, however much its JSON grows.
func TestPackKeepsTheLargest(t *testing.T) {
	for name, v := range map[string]any{
		"escapes":  strings.Repeat("\x01", 992),
		"instants": slices.Repeat(list{noon}, 124),
		"floats":   slices.Repeat(list{-math.MaxFloat64}, 124),
	} {
		l := value.Limits{Bytes: 1000, Depth: 1}
		if err := value.Check(v, l); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		packed, err := value.Pack(v)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if back, err := value.Unpack(packed, l); err != nil || !cmp.Equal(v, back) {
			t.Errorf("%s: got %v", name, err)
		}
		data, err := value.Encode(v)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := value.Decode(data, value.Limits{Bytes: 5000}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnpackRefuses(t *testing.T) {
	for _, text := range []string{`{"$x":1}`, `{"$duration":"soon"}`, `{"$instant":"x"}`, `[{"$duration":"1s","a":1}]`, `{`} {
		if got, err := value.Unpack([]byte(text), value.Limits{}); err == nil {
			t.Errorf("%s: got %v, want an error", text, got)
		}
	}
}

// copied is a value that shares nothing with v.
func copied(v any) any { return value.Replace(v, func(leaf any) any { return leaf }) }

func TestReplaceSharesNothing(t *testing.T) {
	v := dict{"a": list{dict{"b": int64(1)}}}
	c := copied(v).(dict)
	c["a"].(list)[0].(dict)["b"] = "changed"
	if diff := cmp.Diff(dict{"a": list{dict{"b": int64(1)}}}, v); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.0,-0,1e3,"x\u0000",null,true]}`, `9223372036854775808`, `"\ud800"`, `[[[]]]`, `{"$duration":"1s"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := value.Decode(data, value.Limits{})
		if err != nil {
			return
		}
		again, err := value.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		back, err := value.Decode(again, value.Limits{})
		if diff := cmp.Diff(v, back); err != nil || diff != "" {
			t.Fatalf("%v, -want +got\n%s", err, diff)
		}
		if u, err := value.Unpack(data, value.Limits{}); err == nil {
			packed, err := value.Pack(u)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := value.Unpack(packed, value.Limits{}); err != nil {
				t.Fatalf("%s: %v", packed, err)
			}
		}
	})
}

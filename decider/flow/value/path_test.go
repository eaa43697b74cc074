package value_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParsePath(t *testing.T) {
	key := func(k string) value.Step { return value.Step{Kind: value.Key, Key: k} }
	index := func(n int) value.Step { return value.Step{Kind: value.Index, Index: n} }
	end := value.Step{Kind: value.Append}
	for _, tc := range []struct {
		text, back string
		want       value.Path
	}{
		{"a", "a", value.Path{key("a")}},
		{"a.b-c._1", "a.b-c._1", value.Path{key("a"), key("b-c"), key("_1")}},
		{"a['b c']", "a['b c']", value.Path{key("a"), key("b c")}},
		{`a["b"].c`, "a.b.c", value.Path{key("a"), key("b"), key("c")}},
		{`a['it\'s \\']`, `a['it\'s \\']`, value.Path{key("a"), key(`it's \`)}},
		{"a['']", "a['']", value.Path{key("a"), key("")}},
		{"a['b'][0].c[12]", "a.b[0].c[12]", value.Path{key("a"), key("b"), index(0), key("c"), index(12)}},
		{"l[]", "l[]", value.Path{key("l"), end}},
		{"l[-1]", "l[]", value.Path{key("l"), end}},
		{"a['ä']", "a['ä']", value.Path{key("a"), key("ä")}},
	} {
		got, err := value.ParsePath(tc.text)
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, -want +got\n%s", tc.text, err, diff)
		}
		if got.String() != tc.back {
			t.Errorf("%s: written as %s, want %s", tc.text, got, tc.back)
		}
	}
	for _, tc := range []struct {
		text   string
		offset int
		want   string
	}{
		{"", 0, "a name is missing"},
		{".a", 0, "cannot begin with"},
		{"a.", 2, "a name is missing"},
		{"a..b", 2, "cannot begin with"},
		{"a b", 1, "without white space"},
		{"a[x]", 2, "as in a['key']"},
		{"a[1.5]", 2, "is no index"},
		{"a[-2]", 2, "is negative"},
		{"a[99999999999999999999]", 2, "is no index"},
		{"a[0", 1, "not closed"},
		{"a['b]", 2, "quote is not closed"},
		{"a['b'", 5, "bracket is not closed"},
		{"a['b'x]", 5, "bracket is not closed"},
		{"[0]", 0, "cannot begin with"},
		{"a['\xff']", 0, "not valid UTF-8"},
		{"a[0]b", 4, "does not continue"},
		{"ä", 0, "put other keys in brackets"},
		{"a" + strings.Repeat(".a", 64), 127, "too many steps"},
	} {
		got, err := value.ParsePath(tc.text)
		e, ok := errors.AsType[*syntax.Error](err)
		if !ok || e.Offset != tc.offset || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: got %v, %v, want offset %d and %q", tc.text, got, err, tc.offset, tc.want)
		}
	}
	if p, err := value.ParseRelative("[0]['x'].y"); err != nil || p.String() != "[0].x.y" {
		t.Errorf("got %v, %v", p, err)
	}
}

func path(t interface{ Fatal(...any) }, text string) value.Path {
	p, err := value.ParseRelative(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGet(t *testing.T) {
	v := dict{"a": dict{"b c": list{int64(1), dict{"d": "x"}}}, "n": nil, "s": "text"}
	for _, tc := range []struct {
		path    string
		want    any
		found   bool
		problem string
	}{
		{path: "a['b c'][1].d", want: "x", found: true},
		{path: "a['b c'][0]", want: int64(1), found: true},
		{path: "a['b c'][2]"},
		{path: "a.x.y"},
		{path: "n", found: true},
		{path: "n.x"},
		{path: "n[0]"},
		{path: "z"},
		{path: "s.x", problem: "s.x: a string has no keys"},
		{path: "s[0]", problem: "a string has no elements"},
		{path: "a[0]", problem: "a map has no elements"},
		{path: "a['b c'].x", problem: "a list has no keys"},
		{path: "a['b c'][]", problem: "nothing can be read"},
	} {
		got, found, err := value.Get(v, path(t, tc.path))
		if tc.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%s: got %v, %v, want %q", tc.path, got, err, tc.problem)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got); err != nil || found != tc.found || diff != "" {
			t.Errorf("%s: found %v, %v, -want +got\n%s", tc.path, found, err, diff)
		}
	}
}

func TestSet(t *testing.T) {
	old := func() dict { return dict{"a": dict{"b": int64(1)}, "l": list{"x", "y"}, "n": nil, "s": "text"} }
	for _, tc := range []struct {
		path    string
		want    dict // what changes
		problem string
	}{
		{path: "new", want: dict{"new": "v"}},
		{path: "a", want: dict{"a": "v"}},
		{path: "a.b", want: dict{"a": dict{"b": "v"}}},
		{path: "a['c d']", want: dict{"a": dict{"b": int64(1), "c d": "v"}}},
		{path: "a.c.d", want: dict{"a": dict{"b": int64(1), "c": dict{"d": "v"}}}},
		{path: "new.b", want: dict{"new": dict{"b": "v"}}},
		{path: "n.b", want: dict{"n": dict{"b": "v"}}},
		{path: "l[0]", want: dict{"l": list{"v", "y"}}},
		{path: "l[1].k", problem: "l[1].k: a string has no keys"},
		{path: "l[]", want: dict{"l": list{"x", "y", "v"}}},
		{path: "l[-1]", want: dict{"l": list{"x", "y", "v"}}},
		{path: "l[2]", want: dict{"l": list{"x", "y", "v"}}},
		{path: "l[3]", problem: "the list has 2 elements: use [] to append"},
		{path: "new[0]", want: dict{"new": list{"v"}}},
		{path: "new[-1]", want: dict{"new": list{"v"}}},
		{path: "new[]", want: dict{"new": list{"v"}}},
		{path: "new['k']", want: dict{"new": dict{"k": "v"}}},
		{path: "new[1]", problem: "the list has 0 elements"},
		{path: "new[].k[0]", want: dict{"new": list{dict{"k": list{"v"}}}}},
		{path: "s.x", problem: "clear it first"},
		{path: "s[0]", problem: "clear it first"},
		{path: "a[0]", problem: "a map has no elements"},
		{path: "l.x", problem: "a list has no keys"},
	} {
		v := old()
		got, err := value.Set(v, path(t, tc.path), "v")
		if tc.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%s: got %v, %v, want %q", tc.path, got, err, tc.problem)
			}
			continue
		}
		want := old()
		maps.Copy(want, tc.want)
		if diff := cmp.Diff(any(want), got); err != nil || diff != "" {
			t.Errorf("%s: %v, -want +got\n%s", tc.path, err, diff)
		}
		if diff := cmp.Diff(old(), v); diff != "" {
			t.Errorf("%s: the old value changed\n%s", tc.path, diff)
		}
	}
}

func TestClear(t *testing.T) {
	old := func() dict { return dict{"a": dict{"b": int64(1), "c": nil}, "l": list{"x", "y", "z"}, "s": "text"} }
	for _, tc := range []struct {
		path    string
		want    dict
		removed bool
		problem string
	}{
		{"s", dict{"a": dict{"b": int64(1), "c": nil}, "l": list{"x", "y", "z"}}, true, ""},
		{"a.c", dict{"a": dict{"b": int64(1)}, "l": list{"x", "y", "z"}, "s": "text"}, true, ""},
		{"l[1]", dict{"a": dict{"b": int64(1), "c": nil}, "l": list{"x", "z"}, "s": "text"}, true, ""},
		{"l[3]", old(), false, ""},
		{"z", old(), false, ""},
		{"z.y", old(), false, ""},
		{"a.z", old(), false, ""},
		{"l[]", old(), false, "nothing to clear"},
		{"s.x", old(), false, "nothing to clear"},
		{"s.x.y", old(), false, "has no keys"},
	} {
		v := old()
		got, removed, err := value.Clear(v, path(t, tc.path))
		if tc.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%s: got %v, %v, want %q", tc.path, got, err, tc.problem)
			}
			continue
		}
		if diff := cmp.Diff(any(tc.want), got); err != nil || removed != tc.removed || diff != "" {
			t.Errorf("%s: removed %v, %v, -want +got\n%s", tc.path, removed, err, diff)
		}
		if diff := cmp.Diff(old(), v); diff != "" {
			t.Errorf("%s: the old value changed\n%s", tc.path, diff)
		}
	}
	if got, removed, err := value.Clear("x", nil); got != nil || !removed || err != nil {
		t.Errorf("got %v, %v, %v, want the whole value cleared", got, removed, err)
	}
}

// What was set is found, what was cleared is not.
func TestSetThenGet(t *testing.T) {
	steps := rapid.SampledFrom([]string{".a", ".b", "['c d']", "[0]", "[1]", "[]"})
	rapid.Check(t, func(t *rapid.T) {
		var v any = dict{}
		for range rapid.IntRange(1, 6).Draw(t, "sets") {
			p := path(t, "r"+strings.Join(rapid.SliceOfN(steps, 0, 4).Draw(t, "path"), ""))
			before := copied(v)
			part := values().Draw(t, "part")
			next, err := value.Set(v, p, part)
			if diff := cmp.Diff(before, v); diff != "" {
				t.Fatalf("%s changed the old value\n%s", p, diff)
			}
			if err != nil {
				continue
			}
			v = next
			if strings.Contains(p.String(), "[]") {
				continue
			}
			got, found, err := value.Get(v, p)
			if diff := cmp.Diff(part, got); err != nil || !found || diff != "" {
				t.Fatalf("%s: found %v, %v, -want +got\n%s", p, found, err, diff)
			}
			cleared, removed, err := value.Clear(v, p)
			if err != nil || !removed {
				t.Fatalf("%s: removed %v, %v", p, removed, err)
			}
			if p[len(p)-1].Kind == value.Key {
				if _, found, err := value.Get(cleared, p); found || err != nil {
					t.Fatalf("%s: found %v, %v after it was cleared", p, found, err)
				}
			}
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"a.b['c'][0]", "l[]", "l[-1]", `a["b\"c"]`, "a[", "a['", "ä", "a.0", "[0]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := value.ParseRelative(text)
		if err != nil {
			if e, ok := errors.AsType[*syntax.Error](err); !ok || e.Offset > len(text) {
				t.Fatalf("%q: got %#v", text, err)
			}
			return
		}
		again, err := value.ParseRelative(p.String())
		if diff := cmp.Diff(p, again); err != nil || diff != "" {
			t.Fatalf("%q: %v, -want +got\n%s", p, err, diff)
		}
	})
}

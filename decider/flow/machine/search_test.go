package machine

import (
	"slices"
	"testing"

	"github.com/droverhq/drover/decider/flow/run"
	"pgregory.net/rapid"
)

// walk is a run of a few steps with jumps, and what it records.
func walk(t *rapid.T) (*trail, []string) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	path := rapid.SliceOfN(rapid.SampledFrom(names), 1, 20).Draw(t, "path")
	records := map[string]*run.Record{}
	at := atStart
	for _, step := range path {
		if records[step] == nil {
			records[step] = &run.Record{}
		}
		records[step].CameFrom(at)
		at = step
	}
	tr := &trail{
		at: at, fromStart: rapid.Bool().Draw(t, "from start"),
		points: rapid.SliceOfDistinct(rapid.SampledFrom(names), func(s string) string { return s }).Draw(t, "points"),
		before: func(ref string) []string {
			if r := records[ref]; r != nil {
				return r.Before
			}
			return nil
		},
	}
	if rapid.Bool().Draw(t, "marked") {
		tr.last = rapid.SampledFrom(append([]string{atStart}, names...)).Draw(t, "last")
	}
	return tr, path
}

// slow is the search, with nothing remembered but the places it was at: what was left aside is found anew each time.
func slow(t *trail, place string, been []string) (string, bool) {
	switch {
	case t.isPoint(place):
		return place, true
	case place == atStart:
		return "", false
	case !slices.Contains(been, place):
		been = append(slices.Clone(been), place)
		if before := t.before(place); len(before) > 0 {
			return slow(t, before[0], been)
		}
		return slow(t, atStart, been)
	}
	left := map[string]bool{}
	for _, p := range been {
		for i, other := range t.before(p) {
			if i > 0 && !slices.Contains(been, other) {
				left[other] = true
			}
		}
	}
	if len(left) == 1 {
		for other := range left {
			return slow(t, other, been)
		}
	}
	return slow(t, atStart, been)
}

func TestNearestUnderTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr, path := walk(t)
		from := rapid.SampledFrom(append([]string{atStart, atEnd}, path...)).Draw(t, "from")
		got, ok := tr.nearest(from)
		want, wantOK := slow(tr, from, nil)
		if got != want || ok != wantOK {
			t.Errorf("nearest(%s) of %v: got %q %v, want %q %v", from, path, got, ok, want, wantOK)
		}
		if ok && !tr.isPoint(got) {
			t.Errorf("nearest(%s) is %s, which is no point", from, got)
		}
		if !ok && (tr.fromStart || tr.last == atStart) {
			t.Errorf("nearest(%s) found nothing, though the start is a point", from)
		}
	})
}

// A run without loops goes back the way it came: to the latest point at or before the place.
func TestNearestOfAStraightRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), 1, 6, func(s string) string { return s }).Draw(t, "path")
		points := rapid.SliceOf(rapid.SampledFrom(path)).Draw(t, "points")
		fromStart := rapid.Bool().Draw(t, "from start")
		tr := &trail{at: path[len(path)-1], points: points, fromStart: fromStart, before: func(ref string) []string {
			if i := slices.Index(path, ref); i > 0 {
				return path[i-1 : i]
			}
			return []string{atStart}
		}}
		i := rapid.IntRange(0, len(path)-1).Draw(t, "from")
		want, wantOK := "", false
		if fromStart {
			want, wantOK = atStart, true
		}
		for _, step := range path[:i+1] {
			if slices.Contains(points, step) {
				want, wantOK = step, true
			}
		}
		if got, ok := tr.nearest(path[i]); got != want || ok != wantOK {
			t.Errorf("nearest(%s) of %v with points %v: got %q %v, want %q %v", path[i], path, points, got, ok, want, wantOK)
		}
	})
}

func TestNearest(t *testing.T) {
	before := map[string][]string{
		"a": {atStart}, "b": {"c", "a"}, "c": {"b"}, // a b c b c
		"x": {"y", "q", "p"}, "y": {"x"}, "p": {atStart}, "q": {atStart},
	}
	for _, tc := range []struct {
		name, from, want string
		t                trail
	}{
		{name: "a loop is left by the one way aside", from: "c", want: "a", t: trail{points: []string{"a"}}},
		{name: "two ways aside: the start", from: "y", want: "", t: trail{points: []string{"p", "q"}}},
		{name: "two ways aside: the start, a point", from: "y", want: atStart, t: trail{points: []string{"p", "q"}, fromStart: true}},
		{name: "the end is a point", from: atEnd, want: atEnd},
		{name: "the start is not", from: atStart, want: ""},
		{name: "the start is, if it was passed last", from: atStart, want: atStart, t: trail{last: atStart}},
		{name: "where the run is, if it was passed last", from: "b", want: "b", t: trail{at: "b", last: "b"}},
		{name: "not if it was reset since", from: "b", want: "", t: trail{at: "b", last: ""}},
		{name: "no record: the start", from: "unknown", want: atStart, t: trail{fromStart: true}},
	} {
		tc.t.before = func(ref string) []string { return before[ref] }
		if got, ok := tc.t.nearest(tc.from); got != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: got %q %v, want %q", tc.name, got, ok, tc.want)
		}
	}
}

package retention_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/retention"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// closed gives runs r0, r1, ... that closed so many hours ago.
func closed(hours ...int) []retention.Run {
	var runs []retention.Run
	for i, h := range hours {
		runs = append(runs, retention.Run{ID: fmt.Sprintf("r%d", i), Closed: noon.Add(-time.Duration(h) * time.Hour), Expirable: true})
	}
	return runs
}

func fates(verdicts []retention.Verdict) string {
	var b strings.Builder
	for _, v := range verdicts {
		b.WriteString(v.Fate.String()[:1])
	}
	return b.String() // o on disk, s softly, g gone
}

// A0-15: every form judged.
func TestKeep(t *testing.T) {
	for _, tc := range []struct {
		text string
		runs []retention.Run
		want string
		next time.Duration // from noon; 0 is never
	}{
		{"2 hard", closed(1, 2, 3), "oog", 0},
		{"2 hard", closed(3, 2, 1), "goo", 0},
		{"2 soft 3", closed(1, 2, 3, 4), "oosg", 0},
		{"2 soft 1", closed(1, 2, 3, 4), "oogg", 0},
		{"0 soft 2", closed(1, 2, 3), "ssg", 0},
		{"2h hard", closed(1, 2, 3), "oog", 1},
		{"2h hard", closed(1), "o", time.Hour + 1},
		{"1h soft 4h", closed(0, 3, 5), "osg", time.Hour + 1},
		{"forever", closed(1, 99999), "oo", 0},
		{"max(24h, 2) hard", closed(1, 23, 48, 72), "oogg", 0},
		{"max(24h, 2) hard", closed(1, 2, 23, 72), "ooog", time.Hour + 1},
		{"max(24h, 5) hard", closed(30, 40, 50, 60, 70, 80), "ooooog", 0},
		{"min(2, 3, 1h, 2h) hard", closed(0, 1, 2), "oog", 1},
		{"min(2, 24h) hard", closed(1, 2, 3), "oog", 22*time.Hour + 1},
		{"max(1, min(3, 10h)) hard", closed(20, 21, 22), "ogg", 0},
		{"max(1, min(3, 10h)) hard", closed(1, 2, 3, 4), "ooog", 7*time.Hour + 1},
		{"disabled soft 1", closed(1, 2), "sg", 0},
		{"disabled hard", closed(1, 2), "gg", 0},
		{"system", closed(1, 2, 3, 4), "ooog", 0},
		{"1h hard", closed(-5), "o", 6*time.Hour + 1}, // a clock was ahead
		{"3", nil, "", 0},
	} {
		p := retention.Start(parse(t, tc.text), nil, retention.Default())
		verdicts, next := retention.Keep(p, tc.runs, noon)
		if got := fates(verdicts); got != tc.want {
			t.Errorf("%s: got %s, want %s: %+v", tc.text, got, tc.want, verdicts)
		}
		want := time.Time{}
		if tc.next != 0 {
			want = noon.Add(tc.next)
		}
		if !next.Equal(want) {
			t.Errorf("%s: next at %v, want %v", tc.text, next, want)
		}
	}
}

// A0-16: what is not ended for good is always kept, and does not push out others.
func TestKeepWhatIsStillNeeded(t *testing.T) {
	runs := closed(0, 1, 2, 3)
	runs[0].Expirable, runs[3].Expirable = false, false
	for text, want := range map[string]string{"1 hard": "oogo", "0 hard": "oggo", "disabled hard": "oggo"} {
		verdicts, _ := retention.Keep(retention.Start(parse(t, text), nil, retention.Default()), runs, noon)
		if got := fates(verdicts); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// Runs that closed at one moment have an order too, whatever the order of the arguments is.
func TestKeepTies(t *testing.T) {
	runs := closed(1, 1, 1)
	p := retention.Start(parse(t, "1 hard"), nil, retention.Default())
	for range 2 {
		verdicts, _ := retention.Keep(p, runs, noon)
		for _, v := range verdicts {
			if got, want := v.Fate == retention.OnDisk, v.ID == "r2"; got != want {
				t.Errorf("%s: kept %v, want %v", v.ID, got, want)
			}
		}
		slices.Reverse(runs)
	}
}

func TestWhy(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"max(2, 24h) soft 4", []string{
			"Kept: It is the most recent of 5 in its group and closed 1h ago, within the last 2; it goes when newer ones push it out.",
			"Kept: It is the 2nd most recent of 5 in its group and closed 2h ago, within the last 2; it goes when newer ones push it out.",
			"Kept: It is the 3rd most recent of 5 in its group and closed 3h ago, within 1d; it goes after 2026-05-05T09:00:00Z.",
			"Purged from disk, beyond max(2, 1d), but kept softly: It is the 4th most recent of 5 in its group and closed 4d4h ago, within the last 4; it goes when newer ones push it out.",
			"Goes: It is the 5th most recent of 5 in its group and closed 8d8h ago, beyond max(2, 1d).",
		}},
		{"min(4, 1w) hard", []string{
			"Kept: It is the most recent of 5 in its group and closed 1h ago, within the last 4, within 7d; it goes after 2026-05-11T11:00:00Z, or when newer ones push it out.",
		}},
		{"forever", []string{"Kept: It is the most recent of 5 in its group and closed 1h ago; all are kept for ever."}},
		{"disabled hard", []string{"Goes: It is the most recent of 5 in its group and closed 1h ago, and its retention is disabled."}},
	} {
		verdicts, _ := retention.Keep(retention.Start(parse(t, tc.text), nil, retention.Default()), closed(1, 2, 3, 100, 200), noon)
		for i, want := range tc.want {
			if got := verdicts[i].Why; got != want {
				t.Errorf("%s, run %d:\n got %s\nwant %s", tc.text, i, got, want)
			}
		}
	}
	for age, want := range map[time.Duration]string{
		-time.Hour: "0s", 1500400 * time.Microsecond: "1s500ms", 59600400 * time.Microsecond: "59s600ms", 90400 * time.Millisecond: "1m30s",
	} {
		if got := retention.Default().Judge(retention.Run{Closed: noon.Add(-age)}, 0, 1, noon).Why; !strings.Contains(got, "closed "+want+" ago") {
			t.Errorf("%s: got %s, want %s", age, got, want)
		}
	}
	verdicts, _ := retention.Keep(retention.Default(), []retention.Run{{ID: "x"}}, noon)
	if want := "Kept: it, or a run above it, is open or can still go on, so it does not count."; verdicts[0].Why != want {
		t.Errorf("got %s", verdicts[0].Why)
	}
}

func TestOrdinals(t *testing.T) {
	verdicts, _ := retention.Keep(retention.Default(), closed(slices.Repeat([]int{1}, 130)...), noon)
	for place, want := range map[int]string{11: "11th", 12: "12th", 13: "13th", 21: "21st", 22: "22nd", 23: "23rd", 100: "100th", 101: "101st", 111: "111th", 113: "113th", 114: "114th", 121: "121st"} {
		if !slices.ContainsFunc(verdicts, func(v retention.Verdict) bool { return strings.Contains(v.Why, "the "+want+" most") }) {
			t.Errorf("place %d: got none called %s", place, want)
		}
	}
}

// rule is the dumb model of a limit: does it keep a run of this rank and age? It refers to the rules before it, and grows.
type rule func(rank int, age time.Duration) bool

func dumb(v retention.Value, context, parent, system rule) rule {
	switch v.Kind {
	case retention.Count:
		return func(rank int, _ time.Duration) bool { return rank < v.Count }
	case retention.Duration:
		return func(_ int, age time.Duration) bool { return age <= v.Duration }
	case retention.Context:
		return context
	case retention.Parent:
		return parent
	case retention.System:
		return system
	case retention.Min, retention.Max:
		return func(rank int, age time.Duration) bool {
			keeps := func(a retention.Value) bool { return dumb(a, context, parent, system)(rank, age) }
			if v.Kind == retention.Max {
				return slices.ContainsFunc(v.Args, keeps)
			}
			return !slices.ContainsFunc(v.Args, func(a retention.Value) bool { return !keeps(a) })
		}
	}
	return func(int, time.Duration) bool { return true }
}

func drawValue(t *rapid.T, depth int) retention.Value {
	kinds := []retention.Kind{retention.Count, retention.Duration, retention.Context, retention.Parent, retention.System, retention.Forever}
	if depth > 0 {
		kinds = append(kinds, retention.Min, retention.Max, retention.Min, retention.Max)
	}
	v := retention.Value{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
	switch v.Kind {
	case retention.Count:
		v.Count = rapid.IntRange(0, 6).Draw(t, "count")
	case retention.Duration:
		v.Duration = time.Duration(rapid.IntRange(0, 6).Draw(t, "hours")) * time.Hour
	case retention.Min, retention.Max:
		for range rapid.IntRange(1, 4).Draw(t, "args") {
			v.Args = append(v.Args, drawValue(t, depth-1))
		}
	}
	return v
}

func drawRuns(t *rapid.T) []retention.Run {
	runs := closed(rapid.SliceOfN(rapid.IntRange(-1, 8), 0, 9).Draw(t, "hours ago")...)
	for i := range runs {
		runs[i].Expirable = rapid.IntRange(0, 4).Draw(t, "expirable") > 0
	}
	return runs
}

// A0-15: Keep under the model, after any chain of changes.
func TestKeepUnderTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		three := func(rank int, _ time.Duration) bool { return rank < 3 }
		disk, soft := rule(three), rule(three)
		p := retention.Start(retention.Expr{}, nil, retention.Default())
		parent := retention.Start(retention.Expr{Disk: new(hours(4)), Soft: new(count(5))}, nil, retention.Default())
		parentDisk, parentSoft := dumb(hours(4), nil, nil, nil), dumb(count(5), nil, nil, nil)
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			d, s := drawValue(t, 3), drawValue(t, 3)
			p = p.Change(retention.Expr{Disk: &d, Soft: &s}, &parent, retention.Default())
			disk, soft = dumb(d, disk, parentDisk, three), dumb(s, soft, parentSoft, three)
		}
		runs := drawRuns(t)
		verdicts, next := retention.Keep(p, runs, noon)
		compare(t, disk, soft, runs, verdicts, noon)
		if next.IsZero() {
			verdicts, _ = retention.Keep(p, runs, noon.AddDate(90, 0, 0))
			compare(t, disk, soft, runs, verdicts, noon)
			return
		}
		before, _ := retention.Keep(p, runs, next.Add(-1))
		after, _ := retention.Keep(p, runs, next)
		compare(t, disk, soft, runs, before, next.Add(-1))
		compare(t, disk, soft, runs, after, next)
		if fates(before) != fates(verdicts) || fates(after) == fates(verdicts) || !next.After(noon) {
			t.Fatalf("next at %v: %s, just before %s, then %s", next, fates(verdicts), fates(before), fates(after))
		}
	})
}

func compare(t *rapid.T, disk, soft rule, runs []retention.Run, verdicts []retention.Verdict, now time.Time) {
	t.Helper()
	for i, r := range runs {
		rank := 0
		for _, other := range runs {
			if other.Expirable && cmp.Or(other.Closed.Compare(r.Closed), cmp.Compare(other.ID, r.ID)) > 0 {
				rank++
			}
		}
		want := retention.Gone
		switch age := now.Sub(r.Closed); {
		case !r.Expirable || disk(rank, age):
			want = retention.OnDisk
		case soft(rank, age):
			want = retention.Softly
		}
		if verdicts[i].ID != r.ID || verdicts[i].Fate != want {
			t.Fatalf("%s, rank %d: got %+v, want %v", r.ID, rank, verdicts[i], want)
		}
	}
}

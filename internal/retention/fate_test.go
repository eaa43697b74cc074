package retention_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/internal/retention"
)

func TestParseDefault(t *testing.T) {
	for text, want := range map[string]string{
		"3 soft 3": "3 hard", "7d": "7d soft 0", "max(5, 24h) hard": "max(5, 1d) hard", "0": "0 hard", "forever soft 2": "forever soft 2",
	} {
		p, err := retention.ParseDefault(text)
		if err != nil || p.String() != want {
			t.Errorf("%q: got %s, %v, want %s", text, p, err, want)
		}
		if again := retention.ReadPolicy(p.Hash, p.Disk.String(), p.Soft.String(), p.Disabled); again.String() != p.String() {
			t.Errorf("%q: read back as %s", text, again)
		}
	}
	for text, want := range map[string]string{
		"": "a value is missing", "disabled": "cannot be disabled", "5 hash a": "leave out hash", "parent": "parent means nothing here",
		"parent soft 3":  "parent means nothing here",
		"5 soft context": "context means nothing here", "any(2)": "no retention value",
	} {
		if _, err := retention.ParseDefault(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
	for _, bad := range [][2]string{{"", "0"}, {"0", "parent"}, {"5 x", "0"}} {
		if got := retention.ReadPolicy("g", bad[0], bad[1], false).String(); got != "forever hard hash g" {
			t.Errorf("%q is read as %q, want that everything is kept", bad, got)
		}
	}
}

// The fate by rank is that of Keep, and from the first run on that does not stay none does: so a janitor takes them from the end.
func TestFateOfIsThatOfKeep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := []string{"0", "3", "1h", "max(2, 1h)", "min(4, 3h)", "max(1, min(3, 2h)) soft max(5, 1h)", "forever", "2 soft forever", "1 soft 4h"}
		p, err := retention.ParseDefault(rapid.SampledFrom(texts).Draw(t, "policy"))
		if err != nil {
			t.Fatal(err)
		}
		p.Disabled = rapid.Bool().Draw(t, "disabled")
		now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
		var runs []retention.Run
		for i := range rapid.IntRange(0, 12).Draw(t, "runs") {
			ago := time.Duration(rapid.IntRange(0, 5*60).Draw(t, "ago")) * time.Minute
			runs = append(runs, retention.Run{ID: string(rune('a' + i)), Closed: now.Add(-ago), Expirable: true})
		}
		verdicts, _ := retention.Keep(p, runs, now)
		fates := map[string]retention.Fate{}
		for _, v := range verdicts {
			fates[v.ID] = v.Fate
		}
		last := retention.OnDisk
		for rank, r := range slices.SortedFunc(slices.Values(runs), func(a, b retention.Run) int {
			return cmp.Or(b.Closed.Compare(a.Closed), strings.Compare(b.ID, a.ID))
		}) {
			got := p.FateOf(rank, r.Closed, now)
			if got != fates[r.ID] {
				t.Fatalf("%s: rank %d of %v: got %s, Keep says %s", p, rank, runs, got, fates[r.ID])
			}
			if last != retention.OnDisk && got == retention.OnDisk {
				t.Fatalf("%s: rank %d stays one that does not: %v", p, rank, runs)
			}
			last = got
		}
	})
}

func TestWithHash(t *testing.T) {
	if _, err := (retention.Expr{}).WithHash("a b"); err != nil {
		t.Error(err)
	}
}

package retention

import (
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/internal/retention"
)

// What the papers promise.
func TestSizeOfAnEntry(t *testing.T) {
	if got := unsafe.Sizeof(entry{}); got != 24 {
		t.Errorf("an entry takes %d bytes, want 24", got)
	}
}

// The index leaves of each group what the simple model leaves, in whatever order the runs come and however often it is asked.
func TestIndexAgainstTheModel(t *testing.T) {
	base := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		x := newIndex()
		def, err := retention.ParseDefault(rapid.SampledFrom([]string{"0", "2", "1h", "max(1, 30m)", "min(4, 2h)"}).Draw(t, "default"))
		if err != nil {
			t.Fatal(err)
		}
		byType := func(string) retention.Policy { return def }
		left := map[string][]member{}
		now := base
		for i := range rapid.IntRange(1, 40).Draw(t, "turns") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "later")) * time.Minute)
			key := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "group")
			m := member{entry: entry{closed: now.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "ago")) * time.Minute).UnixNano(), seq: uint64(i + 1)}, key: key}
			x.add(m)
			x.add(m) // a repeat changes nothing
			left[key] = append(left[key], m)
			if !rapid.Bool().Draw(t, "expire") {
				continue
			}
			var want []uint64
			for key, all := range left {
				runs := make([]retention.Run, len(all))
				for i, m := range all {
					runs[i] = retention.Run{ID: fmt.Sprintf("%09d", m.seq), Closed: m.at(), Expirable: true}
				}
				verdicts, _ := retention.Keep(def, runs, now)
				kept := all[:0:0]
				for i, v := range verdicts {
					if v.Fate == retention.OnDisk {
						kept = append(kept, all[i])
					} else {
						want = append(want, all[i].seq)
					}
				}
				left[key] = kept
			}
			var got []uint64
			for _, e := range x.expire(byType, now) {
				got = append(got, e.seq)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("%s: got %v, want %v", def, got, want)
			}
			if n := len(left["a"]) + len(left["b"]); x.size != n {
				t.Fatalf("size %d, want %d", x.size, n)
			}
		}
		for key, all := range left {
			g := x.groups[key]
			for _, m := range all {
				if _, found := g.rank(m.entry); !found {
					t.Fatalf("%s: %v is not in its group", key, m.entry)
				}
			}
		}
	})
}

func TestGroupIsJudgedByWhoClosedLast(t *testing.T) {
	x := newIndex()
	policy := func(text string) *retention.Policy {
		p, err := retention.ParseDefault(text)
		if err != nil {
			t.Fatal(err)
		}
		return &p
	}
	for i, text := range []string{"5", "", "1", "2"} {
		m := member{entry: entry{closed: []int64{10, 40, 30, 20}[i], seq: uint64(i + 1)}, key: "g", typ: "t"}
		if text != "" {
			m.policy = policy(text)
		}
		x.add(m)
	}
	g := x.groups["g"]
	if got := g.governing(nil).String(); got != "1 soft 0" || !g.differ {
		t.Errorf("got %s, differ %v", got, g.differ)
	}
	if got := x.take("g"); len(got) != 4 || x.size != 0 || x.take("g") != nil {
		t.Errorf("took %v, %d left", got, x.size)
	}
}

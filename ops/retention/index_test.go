package retention

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/internal/retention"
)

// simple is what the index is compared with: it looks at every run of every group each time.
type simple struct {
	disk, soft map[string]map[uint64]entry // by group and sequence
}

func (s *simple) expire(def retention.Policy, now time.Time) (gone, hard []uint64) {
	for key, runs := range s.disk {
		before := maps.Clone(runs)
		for seq, e := range before {
			switch def.FateOf(newer(before, e), e.at(), now) {
			case retention.OnDisk:
				continue
			case retention.Softly:
				s.soft[key][seq] = e
			}
			delete(runs, seq)
			gone = append(gone, seq)
		}
		before = maps.Clone(s.soft[key])
		for seq, e := range before {
			if def.FateOf(len(runs)+newer(before, e), e.at(), now) == retention.Gone {
				delete(s.soft[key], seq)
				hard = append(hard, seq)
			}
		}
	}
	return gone, hard
}

func newer(all map[uint64]entry, e entry) (n int) {
	for _, f := range all {
		if f.compare(e) > 0 {
			n++
		}
	}
	return n
}

func (s *simple) of(key string) map[uint64]entry {
	if s.disk[key] == nil {
		s.disk[key], s.soft[key] = map[uint64]entry{}, map[uint64]entry{}
	}
	return s.disk[key]
}

func sequences(all []entry) []uint64 {
	seqs := []uint64{}
	for _, e := range all {
		seqs = append(seqs, e.seq)
	}
	slices.Sort(seqs)
	return seqs
}

// indexGame plays the index and the simple model against each other.
type indexGame struct {
	*rapid.T
	x     *index
	model *simple
	def   retention.Policy
	now   time.Time
	seq   uint64
}

func (g *indexGame) group() string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(g.T, "group")
}

func (g *indexGame) policy() {
	texts := []string{"0", "2", "1h", "max(1, 30m)", "min(4, 2h)", "1 soft 3", "30m soft max(2, 2h)", "0 soft 1h", "2 soft forever", "forever", "0 soft 100000d"}
	def, err := retention.ParseDefault(rapid.SampledFrom(texts).Draw(g.T, "default"))
	if err != nil {
		g.Fatal(err)
	}
	g.def = def
	g.x.touchAll()
}

// comes adds a run that has closed lately, perhaps before others that are there.
func (g *indexGame) comes() {
	g.seq++
	ago := time.Duration(rapid.IntRange(0, 20).Draw(g.T, "ago")) * time.Minute
	m := member{entry: entry{closed: g.now.Add(-ago).UnixNano(), seq: g.seq}, key: g.group()}
	for _, e := range g.model.of(m.key) { // no older than what is soft: the run has just closed
		m.closed = max(m.closed, e.closed-int64(10*time.Minute))
	}
	for _, e := range g.model.soft[m.key] {
		m.closed = max(m.closed, e.closed+1)
	}
	g.x.add(m)
	g.model.of(m.key)[m.seq] = m.entry
	if !rapid.Bool().Draw(g.T, "again") {
		return
	}
	for _, seq := range slices.Sorted(maps.Keys(g.model.disk[m.key])) { // one that is there is read again
		if rapid.Bool().Draw(g.T, "this one") {
			m.entry = g.model.disk[m.key][seq]
			g.x.add(m)
		}
	}
}

func (g *indexGame) pass() {
	gone, hard := g.x.expire(func(string) retention.Policy { return g.def }, g.now)
	wantGone, wantHard := g.model.expire(g.def, g.now)
	slices.Sort(wantGone)
	slices.Sort(wantHard)
	if got := sequences(gone); !slices.Equal(got, wantGone) {
		g.Fatalf("%s: got %v, want that %v go", g.def, got, wantGone)
	}
	if got := sequences(hard); !slices.Equal(got, wantHard) {
		g.Fatalf("%s: got %v, want that %v are soft no more", g.def, got, wantHard)
	}
	for _, e := range gone {
		if want := g.has(g.model.soft, e.seq); want != (g.x.softKey[e] != "") {
			g.Fatalf("%s: run %d is soft: %v, want %v", g.def, e.seq, !want, want)
		}
	}
}

func (g *indexGame) has(all map[string]map[uint64]entry, seq uint64) bool {
	for _, runs := range all {
		if _, ok := runs[seq]; ok {
			return true
		}
	}
	return false
}

// hardens takes a soft run out, as when room is made.
func (g *indexGame) hardens() {
	key := g.group()
	for _, seq := range slices.Sorted(maps.Keys(g.model.soft[key])) {
		if rapid.Bool().Draw(g.T, "this one") {
			g.x.harden(g.model.soft[key][seq])
			delete(g.model.soft[key], seq)
			return
		}
	}
}

// purges takes a group that has nothing soft, and gives back what is left.
func (g *indexGame) purges() {
	key := g.group()
	if len(g.model.soft[key]) > 0 {
		return
	}
	taken := g.x.take(key)
	if taken == nil {
		if len(g.model.disk[key]) > 0 {
			g.Fatalf("group %s is not there, want %d runs", key, len(g.model.disk[key]))
		}
		return
	}
	left := taken.runs[rapid.IntRange(0, len(taken.runs)).Draw(g.T, "gone"):]
	for _, e := range taken.runs[:len(taken.runs)-len(left)] {
		delete(g.model.disk[key], e.seq)
	}
	if len(left) > 0 {
		g.x.giveBack(taken, slices.Clone(left))
	}
}

func (g *indexGame) compare() {
	size, soft := 0, 0
	for key, runs := range g.model.disk {
		size, soft = size+len(runs), soft+len(g.model.soft[key])
		for _, e := range runs {
			if rank, found := g.x.rank(g.x.groups[key], e); !found || rank != newer(runs, e) {
				g.Fatalf("run %d of group %s: got rank %d, %v, want %d", e.seq, key, rank, found, newer(runs, e))
			}
		}
		if g.x.groups[key] == nil && len(runs)+len(g.model.soft[key]) > 0 || g.x.groups[key] != nil && len(runs)+len(g.model.soft[key]) == 0 {
			g.Fatalf("group %s: got %+v, want %d runs and %d soft ones", key, g.x.groups[key], len(runs), len(g.model.soft[key]))
		}
	}
	if g.x.size != size || len(g.x.softKey) != soft {
		g.Fatalf("got %d runs and %d soft ones, want %d and %d", g.x.size, len(g.x.softKey), size, soft)
	}
	if len(g.x.agenda.all) > len(g.x.groups) {
		g.Fatalf("got %d groups in the agenda of %d", len(g.x.agenda.all), len(g.x.groups))
	}
}

// The index, which looks only at groups whose moment has come, finds what the simple model finds, in whatever order runs come and go and
// however the default changes.
func TestIndexAgainstTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &indexGame{
			T: t, x: newIndex(), now: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
			model: &simple{disk: map[string]map[uint64]entry{}, soft: map[string]map[uint64]entry{}},
		}
		g.x.keepSoft = true
		g.policy()
		for range rapid.IntRange(1, 60).Draw(t, "turns") {
			g.now = g.now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "later")) * time.Minute)
			switch rapid.IntRange(0, 9).Draw(t, "turn") {
			case 0:
				g.policy()
			case 1:
				g.hardens()
			case 2:
				g.purges()
			case 3, 4, 5:
				g.pass()
			default:
				g.comes()
			}
		}
		g.compare()
	})
}

// A pass looks at no group whose moment has not come.
func TestPassesLookAtWhatHasChanged(t *testing.T) {
	x, now := newIndex(), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	x.keepSoft = true
	looks := 0
	def, err := retention.ParseDefault("1h soft 3h")
	if err != nil {
		t.Fatal(err)
	}
	judged := func(string) retention.Policy { looks++; return def }
	for i := range 100 {
		x.add(member{entry: entry{closed: now.UnixNano(), seq: uint64(i + 1)}, key: fmt.Sprint("group ", i)})
	}
	for _, tt := range []struct {
		after            time.Duration
		looks, goes, out int
	}{
		{0, 100, 0, 0}, {time.Minute, 0, 0, 0}, {time.Hour, 0, 0, 0}, {time.Hour + 1, 100, 100, 0}, {2 * time.Hour, 0, 0, 0}, {3*time.Hour + 1, 100, 0, 100}, {4 * time.Hour, 0, 0, 0},
	} {
		looks = 0
		gone, hard := x.expire(judged, now.Add(tt.after))
		if looks != tt.looks || len(gone) != tt.goes || len(hard) != tt.out {
			t.Errorf("after %v: got %d looks, %d that go and %d soft no more, want %+v", tt.after, looks, len(gone), len(hard), tt)
		}
	}
	if len(x.groups)+len(x.agenda.all)+len(x.softKey)+x.size != 0 {
		t.Errorf("got %d groups, %d in the agenda, %d soft runs, %d runs, want nothing left", len(x.groups), len(x.agenda.all), len(x.softKey), x.size)
	}
}

// Parts, and the earlier runs of a chain, go with another run and are not kept softly, and of a run that is read again there is one.
func TestWhatIsKeptSoftly(t *testing.T) {
	def, err := retention.ParseDefault("0 soft 3")
	if err != nil {
		t.Fatal(err)
	}
	x, now := newIndex(), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	x.keepSoft = true
	for i, key := range []string{typeKey("t"), hashKey("h"), partsKey("r"), chainKey("w", "r"), typeKey("t")} {
		m := member{entry: entry{closed: now.UnixNano(), seq: uint64(i%4 + 1)}, key: key}
		x.add(m)
		if gone, hard := x.expire(func(string) retention.Policy { return def }, now); len(gone) != 1 || len(hard) != 0 {
			t.Errorf("%q: got %d that go and %d soft no more, want 1 and 0", key, len(gone), len(hard))
		}
		want := i%4 < 2
		if g := x.groups[key]; (x.softKey[m.entry] == key) != want || want != (g != nil && len(g.soft) == 1) {
			t.Errorf("%q: got %+v, soft: %q, want it soft: %v", key, g, x.softKey[m.entry], want)
		}
	}
}

// The soft runs against a list of them that is looked through each time.
func TestSoftRunsAgainstTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSoftRuns()
		var model []*softRun
		for i := range rapid.IntRange(1, 60).Draw(t, "turns") {
			if len(model) > 0 && rapid.IntRange(0, 2).Draw(t, "turn") == 0 {
				at := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				if rapid.Bool().Draw(t, "the oldest") {
					at = slices.Index(model, slices.MinFunc(model, func(a, b *softRun) int { return a.compare(b.entry) }))
					if first, ok := s.ends.first(); !ok || first != model[at] {
						t.Fatalf("got %+v first, want %+v", first, model[at])
					}
				}
				s.drop(model[at].entry)
				s.drop(model[at].entry) // a repeat changes nothing
				model = slices.Delete(model, at, at+1)
			} else {
				r := &softRun{entry: entry{closed: int64(rapid.IntRange(1, 9).Draw(t, "closed")), seq: uint64(i + 1)}, size: i}
				r.line.WorkflowID, r.line.Run = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "id"), fmt.Sprint("run ", i)
				s.put(r)
				model = append(model, r)
			}
			size, latest := 0, map[string]*softRun{}
			for _, r := range model {
				if size += r.size; s.get(r.line.WorkflowID, r.line.Run) != r || s.get("c", r.line.Run) != nil {
					t.Fatalf("%s of %s is not found", r.line.Run, r.line.WorkflowID)
				}
				if l := latest[r.line.WorkflowID]; l == nil || r.compare(l.entry) > 0 {
					latest[r.line.WorkflowID] = r
				}
			}
			if s.size != size || len(s.runs) != len(model) || len(s.byID) != len(model) || s.ends.Len() != len(model) {
				t.Fatalf("got %d bytes, %d runs, %d by id, %d by end, want %d bytes and %d runs", s.size, len(s.runs), len(s.byID), s.ends.Len(), size, len(model))
			}
			for _, id := range []string{"a", "b"} {
				if got := s.get(id, ""); got != latest[id] {
					t.Fatalf("latest of %s: got %+v, want %+v", id, got, latest[id])
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
	if rank, found := x.rank(g, entry{closed: 30, seq: 3}); rank != 1 || !found {
		t.Errorf("got rank %d, %v, want 1", rank, found)
	}
	if len(x.differ) != 1 {
		t.Errorf("got %d groups that differ, want each once", len(x.differ))
	}
	if got := x.take("g"); len(got.runs) != 4 || x.size != 0 || x.take("g") != nil {
		t.Errorf("took %v, %d left", got, x.size)
	}
}

package retention

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/internal/retention"
	"github.com/droverhq/drover/schemas"
)

// entry is a closed run: the place of its last record, which tells all the rest. 24 bytes each.
type entry struct {
	closed    int64 // the server's time of the record, in Unix nanoseconds
	seq       uint64
	partition int32
}

func (e entry) at() time.Time { return time.Unix(0, e.closed).UTC() }

// compare orders by the close.
func (e entry) compare(f entry) int {
	switch {
	case e.closed != f.closed:
		return int(min(max(e.closed-f.closed, -1), 1))
	case e.partition != f.partition:
		return int(e.partition - f.partition)
	case e.seq < f.seq:
		return -1
	case e.seq > f.seq:
		return 1
	}
	return 0
}

// member is what decides on the group of a closed run.
type member struct {
	entry
	key    string // of its group
	typ    string
	policy *retention.Policy // nil: the default of its type
	parent *schemas.Execution
}

// group holds runs that are judged together.
type group struct {
	typ      string
	policy   *retention.Policy // of the member that closed last of those that have one
	policyAt int64
	differ   bool    // another member said something else
	runs     []entry // the oldest first
	soft     []entry // those that the policy keeps softly, or is about to: all older than runs; the oldest first
}

// index holds every closed run that is kept, by group.
type index struct {
	groups map[string]*group
	size   int
	// softKey is the group of each run in the soft part of one. With keepSoft unset there are none.
	softKey  map[entry]string
	keepSoft bool
}

func newIndex() *index { return &index{groups: map[string]*group{}, softKey: map[entry]string{}} }

// Keys of groups. The parts of a run of a flow are judged among themselves, and the runs of a chain that have continued too.
func hashKey(hash string) string           { return "hash\x00" + hash }
func typeKey(typ string) string            { return "type\x00" + typ }
func partsKey(parent string) string        { return "parts\x00" + parent }
func chainKey(wid, firstRun string) string { return "chain\x00" + wid + "\x00" + firstRun }

// add puts a run into its group. Runs come nearly in the order of their ends.
func (x *index) add(m member) {
	g := x.groups[m.key]
	if g == nil {
		g = &group{typ: m.typ}
		x.groups[m.key] = g
	}
	at := len(g.runs)
	for at > 0 && g.runs[at-1].compare(m.entry) > 0 {
		at--
	}
	if at > 0 && g.runs[at-1] == m.entry {
		return
	}
	g.runs = slices.Insert(g.runs, at, m.entry)
	x.size++
	if m.policy == nil {
		return
	}
	g.differ = g.differ || g.policy != nil && g.policy.String() != m.policy.String()
	if g.policy == nil || m.closed >= g.policyAt {
		g.policy, g.policyAt = m.policy, m.closed
	}
}

// rank is the place of a run in its group, 0 for the one that closed last.
func (g *group) rank(e entry) (int, bool) {
	at, ok := slices.BinarySearchFunc(g.runs, e, entry.compare)
	return len(g.runs) - 1 - at, ok
}

// governing is the policy of a group.
func (g *group) governing(def func(typ string) retention.Policy) retention.Policy {
	if g.policy != nil {
		return *g.policy
	}
	return def(g.typ)
}

// expire takes out of the groups the runs that their policies do not keep on disk. Of one group those are always the oldest:
// where the allowed age of a rank ends, that of the next rank is no greater, and its run is older.
func (x *index) expire(def func(typ string) retention.Policy, now time.Time) []entry {
	var gone []entry
	for key, g := range x.groups {
		p, n := g.governing(def), 0
		for n < len(g.runs) && p.FateOf(len(g.runs)-1-n, g.runs[n].at(), now) != retention.OnDisk {
			n++
		}
		if n == 0 {
			continue
		}
		gone = append(gone, g.runs[:n]...)
		x.size -= n
		x.soften(key, g, p, n, now)
		if n == len(g.runs) && len(g.soft) == 0 {
			delete(x.groups, key)
			continue
		}
		g.runs = slices.Clone(g.runs[n:])
	}
	return gone
}

// soften puts those of the n oldest runs of a group into its soft part that the policy keeps softly. Parts, and the earlier runs of a
// chain, go with another run, and are not kept so.
func (x *index) soften(key string, g *group, p retention.Policy, n int, now time.Time) {
	if !x.keepSoft || strings.HasPrefix(key, partsKey("")) || strings.HasPrefix(key, "chain\x00") {
		return
	}
	for i, e := range g.runs[:n] {
		if p.FateOf(len(g.runs)-1-i, e.at(), now) != retention.Softly || x.softKey[e] != "" {
			continue
		}
		at, _ := slices.BinarySearchFunc(g.soft, e, entry.compare)
		g.soft = slices.Insert(g.soft, at, e)
		x.softKey[e] = key
	}
}

// softRank is the place of a run of the soft part among all of its group.
func (g *group) softRank(e entry) (int, bool) {
	at, ok := slices.BinarySearchFunc(g.soft, e, entry.compare)
	return len(g.runs) + len(g.soft) - 1 - at, ok
}

// expireSoft takes out of the soft parts the runs that their policies do not keep so any more: as in expire always the oldest.
func (x *index) expireSoft(def func(typ string) retention.Policy, now time.Time) (gone []entry) {
	for _, key := range slices.Compact(slices.Sorted(maps.Values(x.softKey))) {
		g := x.groups[key]
		p, n := g.governing(def), 0
		for n < len(g.soft) && p.FateOf(len(g.runs)+len(g.soft)-1-n, g.soft[n].at(), now) == retention.Gone {
			n++
		}
		gone = append(gone, g.soft[:n]...)
	}
	for _, e := range gone {
		x.harden(e)
	}
	return gone
}

// harden takes a run out of the soft part of its group.
func (x *index) harden(e entry) {
	key := x.softKey[e]
	g := x.groups[key]
	if key == "" || g == nil {
		return
	}
	delete(x.softKey, e)
	if at, ok := slices.BinarySearchFunc(g.soft, e, entry.compare); ok {
		g.soft = slices.Delete(g.soft, at, at+1)
	}
	if len(g.runs)+len(g.soft) == 0 {
		delete(x.groups, key)
	}
}

// take removes a group and returns its runs.
func (x *index) take(key string) []entry {
	g := x.groups[key]
	if g == nil {
		return nil
	}
	delete(x.groups, key)
	x.size -= len(g.runs)
	return g.runs
}

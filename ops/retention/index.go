package retention

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/internal/retention"
	"github.com/droverhq/drover/schemas"
)

// entry is a closed run: the place of its last record, which tells all the rest. 24 bytes each.
type entry struct {
	closed    int64 // about when, in Unix nanoseconds
	seq       uint64
	partition int32
	id        uint32 // of the run, so that another record in that place is not taken for its last
}

// idOf makes a run id short.
func idOf(run string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(run)) // it never fails
	return h.Sum32()
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
	key      string
	typ      string
	policy   *retention.Policy // of the member that closed last of those that have one
	policyAt int64
	differ   bool // another member said something else
	// the oldest first, as far as sorted; those after have come since, in any order
	runs   []entry
	sorted int
	// those that the policy keeps softly, or is about to: all older than runs; the oldest first
	soft []entry
	// next is when the group is to be judged again, in Unix nanoseconds; place is that in the
	// agenda.
	next  int64
	place int
}

// index holds every closed run that is kept, by group.
//
// A judgement changes only when a run comes or goes, when the default does, or at a moment that the
// last judgement tells. So each group is in the agenda by that moment, if there is one, and a pass
// looks at those alone whose moment has come, however many there are.
type index struct {
	groups map[string]*group
	size   int
	agenda queue[*group]
	// whose members were found to say different things, since they were last asked for
	differ []*group
	// softKey is the group of each run in the soft part of one. With keepSoft unset there are none.
	softKey  map[entry]string
	keepSoft bool
}

func newIndex() *index {
	return &index{groups: map[string]*group{}, softKey: map[entry]string{}, agenda: queue[*group]{
		before: func(a, b *group) bool { return a.next < b.next },
		place:  func(g *group) *int { return &g.place },
	}}
}

// Keys of groups. The parts of a run of a flow are judged among themselves, and the runs of a chain
// that have continued too.
func hashKey(hash string) string           { return "hash\x00" + hash }
func typeKey(typ string) string            { return "type\x00" + typ }
func partsKey(parent string) string        { return "parts\x00" + parent }
func chainKey(wid, firstRun string) string { return "chain\x00" + wid + "\x00" + firstRun }

// add puts a run into its group. One that is there already changes nothing.
func (x *index) add(m member) {
	g := x.groups[m.key]
	if g == nil {
		g = &group{key: m.key, typ: m.typ}
		x.groups[m.key] = g
	}
	n := len(g.runs)
	if n > 0 && g.runs[n-1] == m.entry {
		return
	}
	if g.sorted == n && (n == 0 || g.runs[n-1].compare(m.entry) < 0) {
		g.sorted++
	}
	g.runs = append(g.runs, m.entry)
	x.size++
	x.touch(g)
	if m.policy == nil {
		return
	}
	if !g.differ && g.policy != nil && g.policy.String() != m.policy.String() {
		g.differ = true
		x.differ = append(x.differ, g)
	}
	if g.policy == nil || m.closed >= g.policyAt {
		g.policy, g.policyAt = m.policy, m.closed
	}
}

// order sorts what has come since the last time. Partitions are read one after the other, so most
// runs of a first look come out of order: one insertion for each would move half of the group each
// time.
func (x *index) order(g *group) {
	if g.sorted == len(g.runs) {
		return
	}
	late := g.runs[g.sorted:]
	slices.SortFunc(late, entry.compare)
	from, _ := slices.BinarySearchFunc(g.runs[:g.sorted], late[0], entry.compare)
	slices.SortFunc(g.runs[from:], entry.compare)
	n := len(g.runs)
	g.runs = g.runs[:from+len(slices.Compact(g.runs[from:]))]
	x.size -= n - len(g.runs)
	g.sorted = len(g.runs)
}

// touch lets a group be judged with the next pass.
func (x *index) touch(g *group) {
	g.next = 0
	x.agenda.put(g)
}

// touchAll lets every group be judged with the next pass: the defaults are others.
func (x *index) touchAll() {
	for _, g := range x.groups {
		x.touch(g)
	}
}

// rank is the place of a run in its group, 0 for the one that closed last.
func (x *index) rank(g *group, e entry) (int, bool) {
	x.order(g)
	at := g.find(e)
	return len(g.runs) - 1 - at, at >= 0
}

// skew is how far the times are apart, mostly, that two know of a close.
const skew = time.Minute

// find is the place of a run in a sorted group, -1 if it is not there. Two may know different times
// of it.
func (g *group) find(e entry) int {
	same := func(o entry) bool { return byPlace(o, e) == 0 }
	from, _ := slices.BinarySearchFunc(g.runs, e.closed-int64(skew),
		func(o entry, at int64) int { return cmp.Compare(o.closed, at) })
	to, _ := slices.BinarySearchFunc(g.runs, e.closed+int64(skew),
		func(o entry, at int64) int { return cmp.Compare(o.closed, at) })
	if at := slices.IndexFunc(g.runs[from:to], same); at >= 0 {
		return from + at
	}
	return slices.IndexFunc(g.runs, same)
}

// cut takes a run out of a group. Those that are left are judged anew.
func (x *index) cut(g *group, e entry) {
	x.order(g)
	at := g.find(e)
	if at < 0 {
		return
	}
	g.runs = slices.Delete(g.runs, at, at+1)
	g.sorted = len(g.runs)
	if x.size--; len(g.runs)+len(g.soft) == 0 {
		x.remove(g)
		return
	}
	x.touch(g)
}

// oldest is when the oldest run of a group closed, in Unix nanoseconds. The group is sorted.
func (g *group) oldest() int64 {
	switch {
	case len(g.soft) > 0:
		return g.soft[0].closed
	case len(g.runs) > 0:
		return g.runs[0].closed
	}
	return math.MaxInt64
}

// orphaned forgets the policy of a group whose members that have said one are gone, and tells
// whether there was one: another master would not know it either. Since the oldest members go
// first, they are gone once the one that said it last is.
func (g *group) orphaned() bool {
	if g.policy == nil || g.policyAt >= g.oldest() {
		return false
	}
	g.policy, g.policyAt, g.differ = nil, 0, false
	return true
}

// governing is the policy of a group.
func (g *group) governing(def func(typ string) retention.Policy) retention.Policy {
	if g.policy != nil {
		return *g.policy
	}
	return def(g.typ)
}

// expire takes out of the groups whose moment has come the runs that their policies do not keep on
// disk, and out of their soft parts those that they do not keep so any more. Of one group those are
// always the oldest: where the allowed age of a rank ends, that of the next rank is no greater, and
// its run is older.
func (x *index) expire(def func(typ string) retention.Policy, now time.Time) (gone, hard []entry) {
	for g, ok := x.agenda.first(); ok && g.next <= now.UnixNano(); g, ok = x.agenda.first() {
		x.order(g)
		g.orphaned()
		p, n := g.governing(def), 0
		for n < len(g.runs) && p.FateOf(len(g.runs)-1-n, g.runs[n].at(), now) != retention.OnDisk {
			n++
		}
		gone = append(gone, g.runs[:n]...)
		x.size -= n
		x.soften(g, p, n, now)
		if n > 0 {
			g.runs = slices.Clone(g.runs[n:])
			g.sorted = len(g.runs)
		}
		hard = append(hard, x.expireSoft(g, p, now)...)
		if g.orphaned() && len(g.runs)+len(g.soft) > 0 {
			x.touch(g) // those that are left are judged by the default
			continue
		}
		x.plan(g, p, now)
	}
	return gone, hard
}

// plan puts a group that was judged into the agenda, by the moment at which time alone changes the
// judgement.
func (x *index) plan(g *group, p retention.Policy, now time.Time) {
	if len(g.runs)+len(g.soft) == 0 {
		x.remove(g)
		return
	}
	g.next = math.MaxInt64
	at := func(rank int, e entry) {
		if _, until := p.FateUntil(rank, e.at(), now); comes(until) {
			g.next = min(g.next, until.UnixNano())
		}
	}
	if len(g.runs) > 0 {
		at(len(g.runs)-1, g.runs[0])
	}
	if len(g.soft) > 0 {
		at(len(g.runs)+len(g.soft)-1, g.soft[0])
	}
	if g.next == math.MaxInt64 {
		x.agenda.drop(g)
		return
	}
	x.agenda.put(g)
}

// comes tells whether a judgement has an end. Later than the last moment that a timestamp holds is
// never.
func comes(until time.Time) bool {
	return !until.IsZero() && until.Before(time.Unix(0, math.MaxInt64))
}

// soften puts those of the n oldest runs of a group into its soft part that the policy keeps
// softly. Parts, and the earlier runs of a chain, go with another run, and are not kept so.
func (x *index) soften(g *group, p retention.Policy, n int, now time.Time) {
	if !x.keepSoft || strings.HasPrefix(g.key, partsKey("")) ||
		strings.HasPrefix(g.key, "chain\x00") {
		return
	}
	for i, e := range g.runs[:n] {
		if p.FateOf(len(g.runs)-1-i, e.at(), now) != retention.Softly || x.softKey[e] != "" {
			continue
		}
		at, _ := slices.BinarySearchFunc(g.soft, e, entry.compare)
		g.soft = slices.Insert(g.soft, at, e)
		x.softKey[e] = g.key
	}
}

// softRank is the place of a run of the soft part among all of its group.
func (x *index) softRank(g *group, e entry) (int, bool) {
	x.order(g)
	at, ok := slices.BinarySearchFunc(g.soft, e, entry.compare)
	return len(g.runs) + len(g.soft) - 1 - at, ok
}

// expireSoft takes out of the soft part of a group the runs that its policy does not keep so any
// more: as in expire always the oldest.
func (x *index) expireSoft(g *group, p retention.Policy, now time.Time) []entry {
	n := 0
	for n < len(g.soft) && p.FateOf(len(g.runs)+len(g.soft)-1-n, g.soft[n].at(), now) == retention.Gone {
		n++
	}
	gone := g.soft[:n:n]
	for _, e := range gone {
		delete(x.softKey, e)
	}
	g.soft = g.soft[n:]
	return gone
}

// harden takes a run out of the soft part of its group. Those that are left are judged no later
// than they were to be.
func (x *index) harden(e entry) {
	g := x.groups[x.softKey[e]]
	if g == nil {
		return
	}
	delete(x.softKey, e)
	switch at, ok := slices.BinarySearchFunc(g.soft, e, entry.compare); {
	case ok && at == 0: // as it is when room is made: the others need not move
		g.soft = g.soft[1:]
	case ok:
		g.soft = slices.Delete(g.soft, at, at+1)
	}
	switch x.order(g); {
	case len(g.runs)+len(g.soft) == 0:
		x.remove(g)
	case g.orphaned():
		x.touch(g)
	}
}

// take removes a group and returns it, without soft runs and sorted; nil if there is none.
func (x *index) take(key string) *group {
	g := x.groups[key]
	if g == nil {
		return nil
	}
	x.order(g)
	x.remove(g)
	x.size -= len(g.runs)
	return g
}

// giveBack puts a group in again that was taken, with those of its runs that are left.
func (x *index) giveBack(g *group, left []entry) {
	g.runs, g.sorted = left, len(left)
	x.groups[g.key] = g
	x.size += len(left)
	x.touch(g)
}

func (x *index) remove(g *group) {
	delete(x.groups, g.key)
	x.agenda.drop(g)
}

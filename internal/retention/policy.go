package retention

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/droverhq/drover/internal/duration"
)

// Policy is a retention at a moment: it refers to nothing else. It is stored with the run.
type Policy struct {
	Hash     string `json:"hash,omitempty"`
	Disk     Limit  `json:"disk"`
	Soft     Limit  `json:"soft"`
	Disabled bool   `json:"disabled,omitempty"`
}

// Default is the system's policy if the operator sets none: 3 runs of a group, and as many softly.
func Default() Policy { return Policy{Disk: atMost(3), Soft: atMost(3)} }

// Start is the policy of a run that begins with this expression. What is not given, and context, is
// the parent's, or the system's for a run without a parent. A parent's disabled holds for its
// children whatever they say. The hash must have been interpolated; a parent's hash is not
// inherited.
func Start(e Expr, parent *Policy, system Policy) Policy {
	up := above(parent, system)
	return Policy{Disk: up.Disk, Soft: up.Soft}.Change(e, parent, system)
}

// Change is the policy after a run says e on its way: hash, value and soft are replaced if e gives
// them, disabled is set or cleared each time. context is the policy before.
func (p Policy) Change(e Expr, parent *Policy, system Policy) Policy {
	up := above(parent, system)
	next := p
	next.Disabled = e.Disabled || up.Disabled
	if e.Hash != "" {
		next.Hash = e.Hash
	}
	if e.Disk != nil {
		next.Disk = e.Disk.resolve(p.Disk, up.Disk, system.Disk)
	}
	switch {
	case e.Hard && e.Disabled:
		next.Soft = Limit{}
	case e.Hard:
		next.Soft = next.Disk
	case e.Soft != nil:
		next.Soft = e.Soft.resolve(p.Soft, up.Soft, system.Soft)
	}
	return next
}

func above(parent *Policy, system Policy) Policy {
	if parent != nil {
		return *parent
	}
	return system
}

// Limit is a value without references, in the one form that all values with its meaning have. The
// zero Limit keeps nothing.
//
// A count and an age span a box: the runs of at most that rank that closed no longer ago. min cuts
// boxes, max puts them side by side, so every value is a union of boxes. Those that lie within
// others are dropped, and what is left is a stair: counts rise and ages fall. So a limit has no
// more corners than its texts have counts, and a loop that says max(context, 1h) ends where it
// began. The expression itself was rejected as the stored form because it grows with each change.
type Limit struct{ corners []corner }

type corner struct {
	count int           // unlimited: all
	age   time.Duration // duration.Forever: for ever
}

const (
	unlimited  = math.MaxInt
	maxCorners = 256
)

func atMost(n int) Limit { return stair([]corner{{n, duration.Forever}}) }

// NewLimit resolves a value that refers to nothing, for example an operator's default.
func NewLimit(v Value) (Limit, error) {
	if k := v.reference(); k != 0 {
		return Limit{}, fmt.Errorf(
			"retention %q: %s means nothing here: write counts, durations, forever, min(...) and max(...) only",
			clip(v.String()), k)
	}
	return v.resolve(Limit{}, Limit{}, Limit{}), nil
}

// reference returns the first of context, parent and system in the value, or 0.
func (v Value) reference() Kind {
	if v.Kind == Context || v.Kind == Parent || v.Kind == System {
		return v.Kind
	}
	for _, a := range v.Args {
		if k := a.reference(); k != 0 {
			return k
		}
	}
	return 0
}

func (v Value) resolve(context, parent, system Limit) Limit {
	switch v.Kind {
	case Count:
		return atMost(v.Count)
	case Duration:
		return stair([]corner{{unlimited, v.Duration}})
	case Forever:
		return stair([]corner{{unlimited, duration.Forever}})
	case Context:
		return context
	case Parent:
		return parent
	case System:
		return system
	case Min, Max:
		join := cut
		if v.Kind == Max {
			join = union
		}
		var l Limit
		for i, a := range v.Args {
			next := a.resolve(context, parent, system)
			if i > 0 {
				next = join(l, next)
			}
			l = next
		}
		return l
	}
	return Limit{}
}

func union(a, b Limit) Limit { return stair(slices.Concat(a.corners, b.corners)) }

func cut(a, b Limit) Limit {
	var all []corner
	for _, c := range slices.Concat(a.corners, b.corners) {
		x, inA := a.until(c.count - 1)
		y, inB := b.until(c.count - 1)
		if inA && inB {
			all = append(all, corner{c.count, min(x.age, y.age)})
		}
	}
	return stair(all)
}

// stair drops the boxes that hold nothing or lie within others. Beyond maxCorners, which takes a
// definition that is made for it, neighbours are made one box that holds both: more is kept then,
// never less.
func stair(all []corner) Limit {
	slices.SortFunc(all, func(a, b corner) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(b.age, a.age))
	})
	var kept []corner
	for _, c := range all {
		if c.count > 0 && (len(kept) == 0 || c.age > kept[len(kept)-1].age) {
			kept = append(kept, c)
		}
	}
	if len(kept) > maxCorners {
		last := kept[len(kept)-1]
		kept = append(kept[:maxCorners-1], corner{kept[maxCorners-1].count, last.age})
	}
	slices.Reverse(kept)
	return Limit{corners: kept}
}

// until tells for how long after its close the run of a rank, 0 for the most recent, is kept, and
// by which corner.
func (l Limit) until(rank int) (corner, bool) {
	i, _ := slices.BinarySearchFunc(l.corners, rank, func(c corner, rank int) int {
		if c.count > rank {
			return 1
		}
		return -1
	})
	if i == len(l.corners) {
		return corner{}, false
	}
	// counts rise and ages fall: the first that reaches the rank lasts longest
	return l.corners[i], true
}

// Value is an expression of the limit.
func (l Limit) Value() Value {
	args := make([]Value, 0, len(l.corners))
	for _, c := range l.corners {
		args = append(args, c.value())
	}
	switch len(args) {
	case 0:
		return Value{Kind: Count}
	case 1:
		return args[0]
	}
	return Value{Kind: Max, Args: args}
}

func (c corner) value() Value {
	count, age := Value{Kind: Count, Count: c.count}, Value{Kind: Duration, Duration: c.age}
	switch {
	case c.count == unlimited && c.age == duration.Forever:
		return Value{Kind: Forever}
	case c.count == unlimited:
		return age
	case c.age == duration.Forever:
		return count
	}
	return Value{Kind: Min, Args: []Value{count, age}}
}

func (l Limit) String() string { return l.Value().String() }

// Equal tells whether both keep the same runs.
func (l Limit) Equal(other Limit) bool { return slices.Equal(l.corners, other.corners) }

// MarshalText is String.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (l *Limit) UnmarshalText(text []byte) error {
	if len(text) > maxStored {
		return errors.New("retention: the stored limit is too long")
	}
	p := &parser{text: string(text), most: 3*maxCorners + 1}
	v, err := p.value(1)
	if err == nil && p.space() < len(p.text) {
		err = p.problem(p.at, "something follows the value", "")
	}
	if err != nil {
		return err
	}
	*l, err = NewLimit(v)
	return err
}

// maxStored holds maxCorners of the longest corners.
const maxStored = maxCorners * 64

// ReadPolicy reads a policy as it is stored: its limits are what [Limit.String] wrote. What cannot
// be read, from a later version perhaps, keeps every run of its group: nothing is purged by it.
func ReadPolicy(hash, disk, soft string, disabled bool) Policy {
	p := Policy{Hash: hash, Disabled: disabled}
	if p.Disk.UnmarshalText([]byte(disk)) != nil || p.Soft.UnmarshalText([]byte(soft)) != nil {
		all := stair([]corner{{unlimited, duration.Forever}})
		return Policy{Hash: hash, Disk: all, Soft: all}
	}
	return p
}

// ParseDefault reads an operator's default: an expression that refers to nothing, without a hash.
// What is not kept on disk is kept softly only if the expression says so.
func ParseDefault(text string) (Policy, error) {
	e, err := Parse(text)
	switch {
	case err != nil:
		return Policy{}, err
	case e.Hash != "":
		return Policy{}, fmt.Errorf("retention %q: a default names no group: leave out hash",
			clip(text))
	case e.Disabled:
		return Policy{}, fmt.Errorf(
			"retention %q: a default cannot be disabled: write 0 to keep none", clip(text))
	case e.Disk == nil:
		return Policy{}, fmt.Errorf("retention %q: a value is missing: %s", clip(text), example)
	}
	var p Policy
	if p.Disk, err = NewLimit(*e.Disk); err != nil {
		return Policy{}, err
	}
	switch {
	case e.Hard:
		p.Soft = p.Disk
	case e.Soft != nil:
		p.Soft, err = NewLimit(*e.Soft)
	}
	return p, err
}

// String is an expression that says the same.
func (p Policy) String() string {
	s := p.Disk.String()
	if p.Disabled {
		s = "disabled"
	}
	if p.Soft.Equal(p.Disk) {
		s += " hard"
	} else {
		s += " soft " + p.Soft.String()
	}
	if p.Hash != "" {
		s += " hash " + quote(p.Hash)
	}
	return s
}

// FateOf is the fate of a run by its rank among those of its group, 0 for the one that closed last.
// [Keep] says the same, and why.
func (p Policy) FateOf(rank int, closed, now time.Time) Fate {
	fate, _ := p.FateUntil(rank, closed, now)
	return fate
}

// FateUntil is FateOf, and the first moment at which time alone changes it; zero if it never does.
func (p Policy) FateUntil(rank int, closed, now time.Time) (fate Fate, until time.Time) {
	disk := p.Disk
	if p.Disabled {
		disk = Limit{}
	}
	r := Run{Closed: closed}
	if c, ok := disk.holds(r, rank, now); ok {
		return OnDisk, c.end(r)
	}
	if c, ok := p.Soft.holds(r, rank, now); ok {
		return Softly, c.end(r)
	}
	return Gone, time.Time{}
}

package run

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// MaxTargets is how many runs a loop has at most.
const MaxTargets = 10_000

// manyChildren is from how many children on a loop is packed: what has not begun, and what is done,
// take ranges instead of a record each. A decision writes the state, so a record of each child
// would be written as often as there are children.
const manyChildren = 50

// packedLoop are the children of a loop in a state.
type packedLoop struct {
	N       int    `json:"n"`
	First   *int64 `json:"first,omitempty"`  // the targets are the whole numbers from here on
	Targets Value  `json:"targets,omitzero"` // or this list
	// of the targets that are run for, as ranges; all if it is empty
	Index   string   `json:"index,omitempty"`
	Done    string   `json:"done,omitempty"`   // places of children that are done, as ranges
	Outputs Value    `json:"outputs,omitzero"` // theirs, in that order; none in a lean state
	Lean    bool     `json:"lean,omitempty"`   // the outputs stand in the history
	Rest    []placed `json:"rest,omitempty"`   // the children that are open or have failed
}

// placed is a child and its place among all.
type placed struct {
	At    int    `json:"at"`
	Child *Child `json:"child"`
}

// RunsOver notes what the children of a loop are for, if there are enough of them to be packed.
func (i *Instance) RunsOver(list []any) {
	if len(i.Children) < manyChildren {
		return
	}
	first, ok := list[0].(int64)
	for at, v := range list {
		if n, whole := v.(int64); !whole || n-first != int64(at) {
			ok = false
			break
		}
	}
	i.targets = targets{list: Value{V: list}}
	if ok {
		i.targets = targets{first: &first}
	}
}

func (t targets) at(i int) (any, bool) {
	if t.first != nil {
		return *t.first + int64(i), true
	}
	list, _ := t.list.V.([]any)
	if i < 0 || i >= len(list) {
		return nil, false
	}
	return list[i], true
}

// pack is nil for an instance whose children are written one by one.
func (i *Instance) pack(outputs bool) *packedLoop {
	if i.first == nil && i.list.V == nil || len(i.Children) < manyChildren {
		return nil
	}
	p := &packedLoop{N: len(i.Children), First: i.first, Targets: i.list, Lean: !outputs}
	var done, index ranges
	var all []any
	gaps := false
	for at, c := range i.Children {
		gaps = gaps || c.Index != at
		switch {
		case c.Status == ChildDone:
			done.add(at)
			p.Lean = p.Lean || c.lacks
			if outputs {
				all = append(all, c.Output.V)
			}
		case c.Status != Recorded || len(c.State) > 0:
			rest := *c
			rest.Target, rest.Fault = Value{}, c.Fault.clone()
			p.Rest = append(p.Rest, placed{at, &rest})
		}
	}
	if gaps {
		for _, c := range i.Children {
			index.add(c.Index)
		}
	}
	p.Done, p.Index = done.String(), index.String()
	if len(all) > 0 && !p.Lean {
		p.Outputs = Value{V: all}
	}
	return p
}

func (p *packedLoop) each(visit func(*Value)) {
	if p == nil {
		return
	}
	visit(&p.Targets)
	visit(&p.Outputs)
	for _, one := range p.Rest {
		if one.Child != nil {
			visit(&one.Child.Output)
			one.Child.Fault.each(visit)
		}
	}
}

var errLoop = errors.New("the state has a damaged loop")

// unpack makes the children of an instance.
func (i *Instance) unpack() error {
	p := i.Loop
	if i.Loop = nil; p == nil {
		return nil
	}
	i.targets = targets{p.First, p.Targets}
	list, _ := p.Targets.V.([]any)
	if p.N < 0 || p.N > MaxTargets || len(i.Children) > 0 || p.First == nil && len(list) == 0 {
		return errLoop
	}
	index, err := spread(p.Index, MaxTargets)
	if err != nil || len(index) > 0 && len(index) != p.N {
		return errLoop
	}
	i.Children = make([]*Child, p.N)
	for at := range i.Children {
		c := &Child{Index: at}
		if len(index) > 0 {
			c.Index = index[at]
		}
		var ok bool
		if c.Target.V, ok = i.at(c.Index); !ok {
			return errLoop
		}
		i.Children[at] = c
	}
	return i.place(p)
}

func (i *Instance) place(p *packedLoop) error {
	done, err := spread(p.Done, p.N)
	outputs, _ := p.Outputs.V.([]any)
	if err != nil || !p.Lean && len(outputs) != len(done) {
		return errLoop
	}
	for n, at := range done {
		c := i.Children[at]
		c.Status, c.lacks = ChildDone, p.Lean
		if !p.Lean {
			c.Output = Value{V: outputs[n]}
		}
	}
	for _, one := range p.Rest {
		if one.At < 0 || one.At >= p.N || one.Child == nil ||
			i.Children[one.At].Status != Recorded {
			return errLoop
		}
		one.Child.Index, one.Child.Target = i.Children[one.At].Index, i.Children[one.At].Target
		i.Children[one.At] = one.Child
	}
	return nil
}

// instances are all that may have children.
func (s *State) instances() []*Instance {
	all := []*Instance{&s.Whole}
	if s.Trial != nil {
		all = append(all, s.Trial)
	}
	for _, ref := range slices.Sorted(maps.Keys(s.Records)) {
		if r := s.Records[ref]; r != nil && r.Last != nil {
			all = append(all, r.Last)
		}
	}
	return all
}

func (s *State) unpack() error {
	for _, i := range s.instances() {
		if err := i.unpack(); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) packs() bool {
	return slices.ContainsFunc(s.instances(), func(i *Instance) bool { return i.Loop != nil })
}

// ranges are ascending whole numbers, written as 0-4,7.
type ranges struct {
	text     strings.Builder
	from, to int
	some     bool
}

func (r *ranges) add(n int) {
	if r.some && n == r.to+1 {
		r.to = n
		return
	}
	r.flush()
	r.from, r.to, r.some = n, n, true
}

func (r *ranges) flush() {
	if !r.some {
		return
	}
	if r.text.Len() > 0 {
		r.text.WriteByte(',')
	}
	r.text.WriteString(strconv.Itoa(r.from))
	if r.to > r.from {
		r.text.WriteString("-" + strconv.Itoa(r.to))
	}
}

func (r *ranges) String() string {
	r.flush()
	r.some = false
	return r.text.String()
}

// spread is the inverse: numbers below most, ascending.
func spread(text string, most int) ([]int, error) {
	var all []int
	if text == "" {
		return nil, nil
	}
	least := 0
	for one := range strings.SplitSeq(text, ",") {
		first, last, both := strings.Cut(one, "-")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && both {
			to, err = strconv.Atoi(last)
		}
		if err != nil || from < least || to < from || to >= most {
			return nil, errLoop
		}
		for n := from; n <= to; n++ {
			all = append(all, n)
		}
		least = to + 1
	}
	return all, nil
}

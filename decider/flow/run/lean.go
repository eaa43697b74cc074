package run

import (
	"strconv"
	"strings"

	"github.com/droverhq/drover/decider/flow/value"
)

// A state is written with each decision. What is large and stays as it is, such as the input and
// the list of a loop, would be written as often as there are decisions; and so would the outputs of
// a loop, which stand in the history already. A lean state has neither: a large value that was in
// the state before is written once, apart, and named by its number; the outputs are filled in again
// by Fill.

// leanFrom is how large a value is, as value.Size counts, that is written apart.
const leanFrom = 2048

// apart are the values that are written apart. It holds them, so that no other value gets the
// identity of one.
type apart struct {
	numbers map[identity]numbered
	used    map[identity]numbered // in the state that is being written
	before  map[identity]any      // what the last state had within it
	now     map[identity]any      // and this one has
	fresh   map[int]Value
	last    int
}

// numbered is a value that is apart.
type numbered struct {
	n int
	v any
}

// number is that of a value that is apart; 0 for one that is written in the state. The nil apart
// has none.
func (a *apart) number(id identity, v any) int {
	if a == nil {
		return 0
	}
	if one, ok := a.numbers[id]; ok {
		a.used[id] = one
		return one.n
	}
	_, again := a.before[id]
	if _, told := a.now[id]; !again || told || value.Size(v) < leanFrom {
		a.now[id] = v
		return 0
	}
	a.last++
	a.numbers[id], a.fresh[a.last] = numbered{a.last, v}, Value{V: v}
	a.used[id] = a.numbers[id]
	return a.last
}

// recalled are the values that an earlier decision has told apart.
func recalled(values map[int]Value) *apart {
	a := &apart{numbers: map[identity]numbered{}}
	for n, v := range values {
		if id, ok := identify(v.V); ok {
			a.numbers[id] = numbered{n, v.V}
		}
		a.last = max(a.last, n)
	}
	return a
}

// EncodeLean writes a state without the outputs of large loops, and without the values that are to
// be kept apart. fresh has those that earlier calls have not told of: whoever keeps the state keeps
// them, and hands all of them to DecodeLean.
func EncodeLean(s *State) (data []byte, fresh map[int]Value, err error) {
	if s.apart == nil {
		s.apart = recalled(nil)
	}
	a := s.apart
	a.now, a.used, a.fresh = map[identity]any{}, map[identity]numbered{}, map[int]Value{}
	data, err = encode(s, a, false)
	// one that has gone from the state is told anew if it comes back
	a.before, a.numbers = a.now, a.used
	return data, a.fresh, err
}

// Completed is what a run that has succeeded needs to say so again, should that be refused because
// something has come in.
func (s *State) Completed() *State {
	c := &State{
		Program:  s.Program,
		Status:   s.Status,
		Result:   s.Result,
		Reducing: s.Reducing,
		Last:     s.Last,
		Stack:    []Frame{{Kind: Steps}},
	}
	if len(s.Reducing) > 0 {
		c.Vars = s.Vars
	}
	return c
}

// Named tells whether a lean state names values that are apart.
func Named(data []byte) bool { return strings.Contains(string(data), string(apartPrefix)) }

// Lacks tells whether the state misses outputs that it may need before it has taken so many inputs.
func (s *State) Lacks(inputs int) bool {
	for _, i := range s.instances() {
		left, lacks := 0, false
		for _, c := range i.Children {
			lacks = lacks || c.lacks
			if c.Status != ChildDone {
				left++
			}
		}
		if lacks && left <= inputs {
			return true
		}
	}
	return false
}

// All is more inputs than a loop has children.
const All = MaxTargets + 1

// Fill puts the output of a child in its place, by the id of the action that started it, if the
// state misses it.
func (s *State) Fill(id string, output any) {
	ref, rest, ok := strings.Cut(id, "#")
	number, place, both := strings.Cut(rest, "/")
	number, _, _ = strings.Cut(number, ".") // of whichever try
	n, err := strconv.Atoi(number)
	at, err2 := strconv.Atoi(place)
	r := s.Records[ref]
	if !ok || !both || err != nil || err2 != nil || r == nil || r.Last == nil || r.Last.N != n ||
		at < 0 || at >= len(r.Last.Children) {
		return
	}
	if c := r.Last.Children[at]; c.lacks {
		c.Output, c.lacks = Value{V: output}, false
	}
}

// FillFrom takes the outputs that an earlier state of the run has.
func (s *State) FillFrom(earlier *State) {
	for ref, r := range earlier.Records {
		mine := s.Records[ref]
		if r.Last == nil || mine == nil || mine.Last == nil || mine.Last.N != r.Last.N ||
			len(mine.Last.Children) != len(r.Last.Children) {
			continue
		}
		for at, c := range r.Last.Children {
			if one := mine.Last.Children[at]; one.lacks && c.Status == ChildDone && !c.lacks {
				one.Output, one.lacks = c.Output, false
			}
		}
	}
}

package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/droverhq/drover/decider/flow/value"
)

// Formats of a state. One without packed loops and values apart has the first, which every version
// reads.
const (
	format       = 1
	formatPacked = 2
)

// MaxState is how many bytes of an encoded state are read.
const MaxState = 64 << 20

// Value is a value of package value within a state. Nil is none.
type Value struct {
	V   any
	ref int // in the pool, from 1, or apart, from -1 down; while a state is encoded
}

// Map is the value if it is a map, else nil.
func (v Value) Map() map[string]any {
	m, _ := v.V.(map[string]any)
	return m
}

// Equal compares the values.
func (v Value) Equal(other Value) bool { return reflect.DeepEqual(v.V, other.V) }

// MarshalJSON writes the value so that it keeps its type.
func (v Value) MarshalJSON() ([]byte, error) {
	switch { // keys of packed maps never begin with a single $
	case v.ref > 0:
		return fmt.Appendf(nil, `%s%d}`, refPrefix, v.ref), nil
	case v.ref < 0:
		return fmt.Appendf(nil, `%s%d}`, apartPrefix, -v.ref), nil
	}
	return value.Pack(v.V)
}

var refPrefix, apartPrefix = []byte(`{"$ref":`), []byte(`{"$apart":`)

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *Value) UnmarshalJSON(data []byte) error {
	for sign, prefix := range map[int][]byte{1: refPrefix, -1: apartPrefix} {
		rest, ok := bytes.CutPrefix(data, prefix)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(string(bytes.TrimSuffix(rest, []byte("}"))))
		if err != nil || n <= 0 {
			return fmt.Errorf("%s is no reference to a value", data)
		}
		v.ref = sign * n
		return nil
	}
	x, err := value.Unpack(data, value.Limits{Bytes: MaxState, Depth: 2 * value.DefaultDepth})
	v.V = x
	return err
}

// Encode writes a state as JSON. A value that several instances share is written once, and shared
// again by Decode.
func Encode(s *State) ([]byte, error) { return encode(s, nil, true) }

func encode(s *State, a *apart, outputs bool) ([]byte, error) {
	p := pool{seen: map[identity]int{}, apart: a}
	clone := s.clone(outputs) // refs are for this encoding only
	clone.Format = format
	clone.each(p.count)
	clone.each(p.replace)
	if clone.packs() || p.some {
		clone.Format = formatPacked
	}
	clone.Pool = p.values
	data, err := json.Marshal(clone)
	if err != nil {
		return nil, fmt.Errorf("encode the state of a run: %w", err)
	}
	return data, nil
}

// Decode reads what Encode wrote.
func Decode(data []byte) (*State, error) { return DecodeLean(data, nil) }

// DecodeLean reads what EncodeLean wrote, with the values that were told apart.
func DecodeLean(data []byte, values map[int]Value) (*State, error) {
	if len(data) > MaxState {
		return nil, fmt.Errorf("the state of the run has %d bytes, more than %d",
			len(data), MaxState)
	}
	s := &State{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("decode the state of a run: %w", err)
	}
	if s.Format != format && s.Format != formatPacked {
		return nil, fmt.Errorf(
			"the state of the run has format %d, want %d or %d: let a worker of that release answer",
			s.Format, format, formatPacked)
	}
	pooled := s.Pool
	s.Pool = nil
	var bad error
	s.each(func(v *Value) { // the pool comes last: what it holds is named by the others
		if err := v.resolve(pooled, values); err != nil {
			bad = err
		}
	})
	if bad == nil {
		bad = s.unpack()
	}
	s.apart = recalled(values)
	return s, bad
}

// resolve puts the value in the place of a reference.
func (v *Value) resolve(pooled []Value, values map[int]Value) error {
	from := v.ref
	if from > len(pooled) {
		return fmt.Errorf("the state of the run names value %d of %d: it is damaged",
			from, len(pooled))
	}
	if from > 0 {
		*v = pooled[from-1]
	}
	if v.ref >= 0 {
		v.ref = 0
		return nil
	}
	found, ok := values[-v.ref]
	if !ok {
		return fmt.Errorf(
			"the state of the run names a value %d that stands in its history: it is to be read with that",
			-v.ref)
	}
	*v = Value{V: found.V}
	return nil
}

// identity tells values apart without looking into them.
type identity struct {
	at   uintptr
	n    int
	text string
}

const worthPooling = 24 // bytes

func identify(v any) (identity, bool) {
	switch v := v.(type) {
	case string:
		return identity{text: v}, len(v) > worthPooling
	case []any:
		return identity{at: reflect.ValueOf(v).Pointer(), n: len(v) + 1}, len(v) > 0
	case map[string]any:
		return identity{at: reflect.ValueOf(v).Pointer()}, len(v) > 0
	}
	return identity{}, false
}

// pool has the values that occur more than once, in the order in which they are met.
type pool struct {
	seen   map[identity]int // how often; later the negative ref
	values []Value
	apart  *apart // nil if nothing is told apart
	some   bool   // something is
}

func (p *pool) count(v *Value) {
	if id, ok := identify(v.V); ok {
		p.seen[id]++
	}
}

func (p *pool) replace(v *Value) {
	id, ok := identify(v.V)
	if !ok {
		return
	}
	if n := p.apart.number(id, v.V); n > 0 {
		v.ref, p.some = -n, true
		return
	}
	if p.seen[id] == 1 {
		return
	}
	if p.seen[id] > 0 {
		p.values = append(p.values, Value{V: v.V})
		p.seen[id] = -len(p.values)
	}
	v.ref = -p.seen[id]
}

// each visits all values in a fixed order.
func (s *State) each(visit func(*Value)) {
	for _, v := range []*Value{&s.Input, &s.Vars, &s.StartVars, &s.Prev, &s.Result} {
		visit(v)
	}
	s.Failure.each(visit)
	for i := range s.Stack {
		visit(&s.Stack[i].Out)
		s.Stack[i].Failure.each(visit)
	}
	for _, ref := range slices.Sorted(maps.Keys(s.Records)) {
		s.Records[ref].Last.each(visit)
	}
	s.Trial.each(visit)
	s.Whole.each(visit)
	for _, name := range slices.Sorted(maps.Keys(s.Signals)) {
		for i := range s.Signals[name] {
			visit(&s.Signals[name][i])
		}
	}
}

func (f *Failure) each(visit func(*Value)) {
	for ; f != nil; f = f.Cause {
		visit(&f.Fields)
	}
}

func (i *Instance) each(visit func(*Value)) {
	if i == nil {
		return
	}
	for _, v := range []*Value{&i.Prev, &i.Vars, &i.Inputs, &i.Output, &i.Folded} {
		visit(v)
	}
	i.Failure.each(visit)
	for _, key := range slices.Sorted(maps.Keys(i.Reads)) {
		v := i.Reads[key]
		visit(&v)
		i.Reads[key] = v
	}
	for _, c := range i.Children {
		visit(&c.Target)
		visit(&c.Output)
		c.Fault.each(visit)
	}
	i.Loop.each(visit)
}

// clone copies all that holds values, but not the values.
func (s *State) clone(outputs bool) *State {
	c := *s
	c.Failure = s.Failure.clone()
	c.Stack = slices.Clone(s.Stack)
	for i := range c.Stack {
		c.Stack[i].Failure = c.Stack[i].Failure.clone()
	}
	c.Records = maps.Clone(s.Records)
	for ref, r := range c.Records {
		copied := *r
		copied.Last = r.Last.clone(outputs)
		c.Records[ref] = &copied
	}
	c.Trial = s.Trial.clone(outputs)
	c.Whole = *s.Whole.clone(outputs)
	c.Signals = maps.Clone(s.Signals)
	for name, queue := range c.Signals {
		c.Signals[name] = slices.Clone(queue)
	}
	return &c
}

func (f *Failure) clone() *Failure {
	if f == nil {
		return nil
	}
	c := *f
	c.Cause = f.Cause.clone()
	return &c
}

func (i *Instance) clone(outputs bool) *Instance {
	if i == nil {
		return nil
	}
	c := *i
	c.Failure = i.Failure.clone()
	c.Reads = maps.Clone(i.Reads)
	if c.Loop = i.pack(outputs); c.Loop != nil {
		c.Children = nil
		return &c
	}
	c.Children = slices.Clone(i.Children)
	for n, child := range c.Children {
		copied := *child
		copied.Fault = child.Fault.clone()
		c.Children[n] = &copied
	}
	return &c
}

package model

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/droverhq/drover/decider/flow/value"
)

// format is the number of the stored form. A reader refuses numbers and fields that it does not
// know: to run a part of a definition would be worse than to run none of it.
const format = 1

const maxEncoded = 16 << 20

type stored struct {
	Format     int         `json:"drover_flow"`
	Definition *Definition `json:"definition"`
}

// Encode writes the canonical JSON: the same definition gives the same bytes. Positions are in it.
// Do not marshal a Definition by itself: it would lose whether a number is whole.
func (d *Definition) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(stored{format, d.mapped(conversion{value: toJSON})}); err != nil {
		return nil, fmt.Errorf("flow: encode the definition: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Version names the content: definitions that differ only in comments, layout and the order of keys
// have the same.
func (d *Definition) Version() string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(stored{format, d.mapped(conversion{value: toJSON, noPositions: true})}); err != nil {
		// only if a program made it
		panic("flow: a definition holds what is no plain data: " + err.Error())
	}
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:16])
}

// Decode reads what Encode wrote. What comes from elsewhere is refused where the interpreter would
// stumble over it.
func Decode(data []byte) (*Definition, error) {
	if len(data) > maxEncoded {
		return nil, fmt.Errorf("flow: the stored definition has %d bytes, more than %d",
			len(data), maxEncoded)
	}
	var s stored
	j := json.NewDecoder(bytes.NewReader(data))
	j.UseNumber()
	j.DisallowUnknownFields()
	if err := j.Decode(&s); err != nil {
		return nil, fmt.Errorf(
			"flow: read the stored definition; if a newer drover wrote it, upgrade this one: %w",
			err)
	}
	if _, err := j.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("flow: something follows the stored definition")
	}
	if s.Format != format || s.Definition == nil {
		return nil, fmt.Errorf(
			"flow: the stored definition has format %d, this drover reads %d: upgrade it",
			s.Format, format)
	}
	v := verifier{root: s.Definition}
	if err := v.all(); err != nil {
		return nil, fmt.Errorf("flow: the stored definition is damaged: %w", err)
	}
	bad := false
	d := s.Definition.mapped(conversion{value: func(v any) any { return fromJSON(v, 0, &bad) }})
	if bad {
		return nil, errors.New(
			"flow: the stored definition is damaged: a number does not fit, or values are nested too deep")
	}
	return d, nil
}

// toJSON copies a value so that JSON keeps whole and other numbers apart.
func toJSON(v any) any {
	return value.Replace(v, func(leaf any) any {
		if f, ok := leaf.(float64); ok {
			return json.Number(value.FloatText(f))
		}
		return leaf
	})
}

func fromJSON(v any, depth int, bad *bool) any {
	if depth > 2*maxDepth {
		*bad = true
		return nil
	}
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, err := v.Float64()
		*bad = *bad || err != nil || !strings.ContainsAny(v.String(), ".eE")
		return f
	case []any:
		for i, item := range v {
			v[i] = fromJSON(item, depth+1, bad)
		}
	case map[string]any:
		for k, item := range v {
			v[k] = fromJSON(item, depth+1, bad)
		}
	}
	return v
}

// conversion copies a definition with all its values.
type conversion struct {
	value       func(any) any
	noPositions bool
}

func (c conversion) dict(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	out, _ := c.value(m).(map[string]any)
	return out
}

func (d *Definition) mapped(c conversion) *Definition {
	if d == nil {
		return nil
	}
	to := *d
	to.Input, to.Output, to.Condition = c.dict(d.Input), c.value(d.Output), c.value(d.Condition)
	to.Parameters = maps.Clone(d.Parameters)
	for name, p := range to.Parameters {
		p.Default = c.value(p.Default)
		p.Constraints, _ = c.value(p.Constraints).([]any)
		to.Parameters[name] = p
	}
	to.OnError, to.Steps = c.steps(d.OnError), c.steps(d.Steps)
	to.Types = maps.Clone(d.Types)
	for name, t := range to.Types {
		to.Types[name] = t.mapped(c)
	}
	if c.noPositions {
		to.Pos = Position{}
	}
	return &to
}

func (c conversion) steps(all []*Step) []*Step {
	out := slices.Clone(all)
	for i, s := range out {
		out[i] = s.mapped(c)
	}
	return out
}

func (s *Step) mapped(c conversion) *Step {
	if s == nil {
		return nil
	}
	to := *s
	to.Inputs, to.Condition = c.dict(s.Inputs), c.value(s.Condition)
	to.Output, to.Metadata = c.value(s.Output), c.value(s.Metadata)
	to.OnError, to.Block, to.Cases = c.steps(s.OnError), c.steps(s.Block), c.steps(s.Cases)
	to.Then, to.Nested = s.Then.mapped(c), s.Nested.mapped(c)
	if s.Loop != nil {
		loop := *s.Loop
		loop.Target, loop.Reducing = c.value(loop.Target), c.dict(loop.Reducing)
		to.Loop = &loop
	}
	if c.noPositions {
		to.Pos = Position{}
	}
	return &to
}

// verifier checks what the interpreter relies on.
type verifier struct {
	root  *Definition
	steps int
}

func (v *verifier) all() error {
	for _, name := range slices.Sorted(maps.Keys(v.root.Types)) {
		t := v.root.Types[name]
		switch _, builtin := names[name]; {
		case t == nil || builtin || len(t.Types) > 0:
			return fmt.Errorf("the step type %s", quoted(name))
		}
		v.steps = 0
		if err := v.definition(t, "", 0); err != nil {
			return fmt.Errorf("step type %s: %w", name, err)
		}
	}
	v.steps = 0
	if err := v.acyclic(); err != nil {
		return err
	}
	return v.definition(v.root, "", 0)
}

// acyclic makes sure that no type comes to use itself.
func (v *verifier) acyclic() error {
	const open, done = 1, 2
	state := map[string]int{}
	var visit func(name string) error
	visit = func(name string) error {
		switch state[name] {
		case open:
			return fmt.Errorf("the step type %s comes to use itself", quoted(name))
		case done:
			return nil
		}
		state[name] = open
		for s := range v.root.Types[name].All() {
			if v.root.Types[s.Type] == nil {
				continue
			}
			if err := visit(s.Type); err != nil {
				return err
			}
		}
		state[name] = done
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(v.root.Types)) {
		if err := visit(name); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) definition(d *Definition, base string, depth int) error {
	return cmp.Or(v.list(d.Steps, stepsBase(base), depth+1),
		v.list(d.OnError, base+"on-error.", depth+1))
}

func (v *verifier) list(steps []*Step, base string, depth int) error {
	for i, s := range steps {
		if err := v.step(s, base+itoa(i), depth); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) step(s *Step, ref string, depth int) error {
	if v.steps++; v.steps > MaxSteps || depth > MaxNest+1 {
		return fmt.Errorf("too many steps, or nested too deep, at %s", ref)
	}
	if s == nil || s.Ref != ref {
		return fmt.Errorf("the step at %s", ref)
	}
	if _, builtin := builtins[s.Type]; !builtin && v.root.Types[s.Type] == nil {
		return fmt.Errorf("the step at %s has the unknown type %s", ref, quoted(s.Type))
	}
	if err := s.shape(); err != nil {
		return err
	}
	if s.Nested != nil {
		if s.Nested.Types != nil || len(s.OnError) > 0 {
			return fmt.Errorf("the nested workflow at %s", ref)
		}
		if err := v.definition(s.Nested, ref+".", depth); err != nil {
			return err
		}
	}
	if s.Then != nil {
		if err := v.step(s.Then, ref+".then", depth+1); err != nil {
			return err
		}
	}
	return cmp.Or(v.list(s.Block, ref+".steps.", depth+1), v.list(s.Cases, ref+".cases.", depth+1),
		v.list(s.OnError, ref+".on-error.", depth+1))
}

// shape tells whether a step has what its type says, and nothing else.
func (s *Step) shape() error {
	want := map[string]bool{}
	switch s.Type {
	case "if":
		want["then"], want["block"] = s.Then != nil, s.Then == nil
	case "subworkflow":
		want["block"] = true
	case "switch":
		want["cases"] = true
	case "foreach":
		want["nested"], want["loop"] = true, true
	case "workflow":
		want["nested"], want["loop"] = s.Nested != nil, s.Nested != nil && s.Loop != nil
	}
	for _, part := range []struct {
		name string
		has  bool
	}{
		{"then", s.Then != nil},
		{"block", len(s.Block) > 0},
		{"cases", len(s.Cases) > 0},
		{"nested", s.Nested != nil},
		{"loop", s.Loop != nil},
	} {
		if part.has != want[part.name] {
			return fmt.Errorf("the step at %s of type %s: %s", s.Ref, quoted(s.Type), part.name)
		}
	}
	return nil
}

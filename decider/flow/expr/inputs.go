package expr

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/droverhq/drover/decider/flow/value"
)

// Inputs are the inputs of one step: expressions that may refer to each other and are evaluated
// once, on first use. What they became is remembered, so that a run that is resumed sees the same
// values.
//
// An input may refer to the outer variable of its own name: while x is evaluated, Lookup finds no
// x, and the Resolver goes on to the scopes further out. Any other way back to an input that is
// being evaluated is an error.
type Inputs struct {
	source map[string]*Expr
	done   map[string]any
	stack  []string // those being evaluated, the innermost last
}

// NewInputs returns inputs of which those in done, which may be nil, have been evaluated before.
// The maps are not changed.
func NewInputs(source map[string]*Expr, done map[string]any) *Inputs {
	in := &Inputs{source: source, done: maps.Clone(done)}
	if in.done == nil {
		in.done = map[string]any{}
	}
	return in
}

// Lookup returns the input of a name, and whether there is one. The Resolver calls it when the
// search for a name comes to the inputs of the step.
func (in *Inputs) Lookup(env *Env, name string) (v any, found bool, err error) {
	if v, ok := in.done[name]; ok {
		return v, true, nil
	}
	x, ok := in.source[name]
	if !ok || len(in.stack) > 0 && in.stack[len(in.stack)-1] == name {
		return nil, false, nil
	}
	if slices.Contains(in.stack, name) {
		return nil, true, fmt.Errorf("input %s: %w: %s -> %s", name, ErrCycle,
			strings.Join(in.stack, " -> "), name)
	}
	in.stack = append(in.stack, name)
	defer func() { in.stack = in.stack[:len(in.stack)-1] }()
	if v, err = x.Eval(env); err != nil {
		return nil, true, fmt.Errorf("input %s: %w", name, err)
	}
	in.done[name] = v
	return v, true, nil
}

// All evaluates every input, in the order of their names.
func (in *Inputs) All(env *Env) (map[string]any, error) {
	for _, name := range slices.Sorted(maps.Keys(in.source)) {
		if _, _, err := in.Lookup(env, name); err != nil {
			return nil, err
		}
	}
	return in.Done(), nil
}

// Done returns the inputs that have been evaluated so far, to be kept with the run.
func (in *Inputs) Done() map[string]any { return maps.Clone(in.done) }

// Resolve makes Inputs a Resolver without outer scopes.
func (in *Inputs) Resolve(env *Env, path value.Path) (any, int, error) {
	v, found, err := in.Lookup(env, path[0].Key)
	if err == nil && !found {
		err = Missing(path[:1])
	}
	return v, 1, err
}

package machine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/run"
)

// Route is what a replay would run.
type Route struct {
	// From is where it begins: start, end if nothing is left to run, or the ref of a step; after
	// the last step of a list, of that one.
	From string
	// Resumes: the step goes on with the inputs that it had, and its condition is not judged again.
	Resumes bool
	// Again are the steps that have run since that place, those in blocks too, in the order of the
	// text.
	Again []Again
}

// Again is a step that has run.
type Again struct {
	Ref, ID, Type string
	// Risky: the step, or one of a run within it, may not simply run twice.
	Risky bool
}

// Preview tells what a replay would run, and runs nothing. A [*Failure] says that the run cannot be
// replayed from there; any other error that the state is none of this program.
func Preview(p *Program, o Origin) (*Route, error) {
	s, err := replayed(p, o.State)
	if err != nil {
		return nil, err
	}
	m := &machine{p: p, s: s, random: func() float64 { return 0.5 }}
	if err := m.fits(); err != nil {
		return nil, err
	}
	stood := s.At
	if err := m.begins(&o); err != nil && !errors.Is(err, errMoved) {
		return nil, run.FailureOf(err)
	}
	switch st := m.current(m.top()); {
	case s.Status == run.Succeeded:
		return &Route{From: atEnd}, nil
	case m.began != "":
		return &Route{From: m.began, Resumes: s.Entered, Again: m.since(m.began, stood)}, nil
	case st != nil: // between two steps
		return &Route{From: st.Ref}, nil
	}
	return &Route{From: stood}, nil
}

// replayed reads the state of a run that has ended as that of one which is about to begin. What was
// still open ended with the old run without a word: no answer to it comes to the new one.
func replayed(p *Program, state []byte) (*run.State, error) {
	s, err := run.Decode(state)
	if err != nil {
		return nil, err
	}
	if s.Program != p.key {
		return nil, fmt.Errorf("the state is of part %q of the flow, and the run is of part %q",
			s.Program, p.key)
	}
	s.Status, s.Wait, s.Timers, s.Locked, s.Failure, s.Idle = run.Staged, nil, nil, "", nil, 0
	for _, r := range s.Records {
		if r == nil || r.Last == nil {
			continue
		}
		for _, c := range r.Last.Children {
			if c != nil && c.Status == run.Open {
				c.Status, c.Ending, c.State = run.ChildFailed, false, nil
				c.Fault = run.NewFailure(run.NameInterrupted, "the run around it has ended before it")
			}
		}
	}
	return s, nil
}

// since are the steps on all recorded ways from a place to where the run stood.
func (m *machine) since(from, stood string) []Again {
	seen := map[string]bool{}
	for todo := []string{stood}; len(todo) > 0; {
		ref := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		r := m.s.Records[ref]
		if seen[ref] || r == nil {
			continue
		}
		seen[ref] = true
		if ref != from {
			todo = append(todo, r.Before...)
		}
	}
	var all []Again
	for ref := range seen {
		st := m.p.steps[ref]
		all = append(all, Again{Ref: ref, ID: st.ID, Type: st.Type, Risky: m.risky(st)})
	}
	slices.SortFunc(all, func(a, b Again) int { return m.p.order(a.Ref, b.Ref) })
	return all
}

// order compares places in the text: a step stands before those within it.
func (p *Program) order(a, b string) int {
	return slices.Compare(p.path(a), p.path(b))
}

// path leads to a step from the outermost list: what kind of list, and which step of it.
func (p *Program) path(ref string) []int {
	var path []int
	for st := p.steps[ref]; st != nil; st = st.list.owner {
		path = append(path, st.index, slices.Index(listKinds, st.list.kind))
	}
	slices.Reverse(path)
	return path
}

var listKinds = []run.ListKind{run.Steps, run.Then, run.Block, run.Case, run.OfStep, run.OfWorkflow}

// risky tells whether a step may not simply run twice. A block is not: its steps are judged on
// their own.
func (m *machine) risky(st *step) bool {
	if r := m.s.Records[st.Ref]; r != nil && r.Started == 1 && r.Last != nil && r.Last.Unasked {
		return false
	}
	switch m.idempotent(st) {
	case model.Idempotent:
		return false
	case model.NotIdempotent:
		return true
	}
	switch {
	case st.child != "":
		all := m.s.IdempotentAll || m.p.def.IdempotentAll
		return m.p.flow.risks(st.child, all, map[string]bool{})
	case st.Type == "activity":
		return m.s.Records[st.Ref].Last.Inputs.V != nil // it was handed to a worker
	}
	return st.Type == "child"
}

// risks tells whether a step of a part may not simply run twice, or of a part within that.
func (f *Flow) risks(key string, all bool, seen map[string]bool) bool {
	p := f.programs[key]
	if p == nil || seen[key] {
		return p == nil
	}
	seen[key] = true
	all = all || p.def.IdempotentAll
	for _, st := range p.steps {
		switch st.idempotence(all) {
		case model.Idempotent:
			continue
		case model.NotIdempotent:
			return true
		}
		if st.Type == "activity" || st.Type == "child" ||
			st.child != "" && f.risks(st.child, all, seen) {
			return true
		}
	}
	return false
}

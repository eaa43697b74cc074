package contract

import (
	"fmt"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// WorkflowOf is the contract of a workflow; see [Workflow].
type WorkflowOf[In, Out any] struct {
	call[In, Out]
	accepts []Message
}

// Message is what a workflow may be sent while it runs: a [SignalOf].
type Message interface {
	// Name is the name of the signal.
	Name() string

	message() // no other type can be sent
}

// Workflow declares the workflow type of that name, 1 to [MaxNameLen] bytes. It is started with an
// In and ends with an Out. accepts are the signals that it takes.
//
// Workflow panics on mistakes of the program.
func Workflow[In, Out any](name string, accepts ...Message) *WorkflowOf[In, Out] {
	w := &WorkflowOf[In, Out]{
		call:    declare[In, Out](schemas.WorkflowKind, name),
		accepts: slices.Clone(accepts),
	}
	given := map[string]bool{}
	for i, m := range accepts {
		if m == nil {
			must(w.of, fmt.Sprintf("the message %d that it accepts is nil", i+1))
		}
		if given[m.Name()] {
			must(w.of, fmt.Sprintf("it accepts %q twice: keep one", m.Name()))
		}
		given[m.Name()] = true
	}
	return w
}

// Accepts returns the signals that the workflow takes, in the order of the declaration.
func (w *WorkflowOf[In, Out]) Accepts() []Message { return slices.Clone(w.accepts) }

// StartChild returns the decision that asks for the workflow as a child. An error says which option
// cannot stand, or that the input cannot be encoded.
func (w *WorkflowOf[In, Out]) StartChild(in In, opts ...Option) (*schemas.StartChild, error) {
	input, err := w.EncodeInput(in)
	if err != nil {
		return nil, err
	}
	c := &schemas.StartChild{WorkflowType: w.name, Input: input}
	for _, o := range opts {
		switch {
		case o.name == "":
			return nil, invalid(w.of, zeroOption)
		case o.child == nil:
			return nil, invalid(w.of, o.name+" is for activities alone")
		}
		o.child(c)
	}
	if err := c.ValidateLimits(); err != nil {
		return nil, invalid(w.of, err.Message)
	}
	return c, nil
}

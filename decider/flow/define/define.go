// Package define turns the text of a flow, or of a step type, into a definition whose embedded
// languages have been checked too: it is where model meets expr, condition, backoff and
// concurrency.
//
// Invariants:
//
//   - What Parse accepts, [machine.Compile] accepts: nobody deploys what no run could begin.
//   - An error points at the place within an expression, not at the line that holds it. Of a
//     condition, which is a tree, it names the key too.
//   - It is pure. Registered step types come from the caller.
//
// The commands and whoever deploys call it.
package define

import (
	"errors"
	"fmt"
	"strings"

	"github.com/droverhq/drover/decider/flow/backoff"
	"github.com/droverhq/drover/decider/flow/concurrency"
	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/schemas"
)

// Registry finds a registered step type by its name. Nil knows none.
type Registry func(name string) (*model.Definition, bool)

// Result is what a text defines.
type Result struct {
	*model.Definition
	StepType bool           // it defines a step type: it has an id
	Warnings []*model.Error // what is allowed but hardly meant
}

// Parse reads a text that defines a flow or, if it has an id, a step type. The file is for messages
// only. Errors are of type [model.Errors].
//
// The model is told beforehand which of the two a text is, and only reading tells it. So a text
// that is no flow is read once more as a step type, and the reading with fewer errors is taken for
// what was meant; a draw is a flow. One that is a flow but for what it means is not read again:
// those errors come last, so the other reading would never get to them.
func Parse(file string, text []byte, known Registry) (*Result, error) {
	flow, d, err := parse(file, text, known, false)
	if d != nil && d.ID == "" {
		return flow, err
	}
	step, _, stepErr := parse(file, text, known, true)
	if err == nil || stepErr == nil || count(stepErr) < count(err) {
		return step, stepErr
	}
	return nil, err
}

func count(err error) int {
	all, _ := errors.AsType[model.Errors](err)
	return len(all)
}

// parse also returns the definition of a text that is well formed, although it has no result.
func parse(
	file string, text []byte, known Registry, stepType bool,
) (*Result, *model.Definition, error) {
	r := &Result{StepType: stepType}
	d, err := model.Parse(file, text, &model.Options{
		StepType: stepType, Types: known, Checks: checks(),
		Warn: func(e *model.Error) { r.Warnings = append(r.Warnings, e) },
	})
	if err != nil {
		return nil, nil, err
	}
	if _, err := machine.Compile(d); err != nil {
		return nil, d, refused(file, text, d, err)
	}
	if err := required(file, text, d); err != nil {
		return nil, d, err
	}
	r.Definition = d
	return r, d, nil
}

// checks are the readers of the languages within texts.
func checks() model.Checks {
	return model.Checks{
		Text:        func(s string) error { _, err := expr.ParseTemplate(s); return err },
		Let:         func(s string) error { _, err := expr.ParseLet(s); return err },
		Transform:   func(s string) error { _, err := expr.ParseChain(s); return err },
		Backoff:     func(s string) error { _, err := backoff.Parse(s); return err },
		Limit:       func(s string) error { _, err := backoff.ParseLimit(s); return err },
		Concurrency: func(s string) error { _, err := concurrency.Parse(s); return err },
		Condition:   func(v any) error { _, err := condition.Parse(v); return err },
		Lock:        lock,
		Explain:     explain,
		Place:       place,
	}
}

// lock says what the broker would say of the name of a lock when a run asks for it.
func lock(s string) error {
	if len(s) > schemas.MaxIDLen {
		return fmt.Errorf("%d bytes; want 1 to %d", len(s), schemas.MaxIDLen)
	}
	if schemas.ValidateID("lock", s) != nil {
		return errors.New("it has control characters, or is not UTF-8")
	}
	return nil
}

// explain takes an error of one of the languages apart.
func explain(err error) (offset int, problem, hint string) {
	e, ok := errors.AsType[*syntax.Error](err)
	c, within := errors.AsType[*condition.Error](err)
	switch {
	case within && !ok:
		return -1, inCondition(c.Path) + c.Err.Error(), ""
	case within:
		return e.Offset, inCondition(c.Path) + "the " + e.What + ": " + e.Problem, e.Hint
	case ok:
		return e.Offset, "the " + e.What + ": " + e.Problem, e.Hint
	}
	return -1, err.Error(), ""
}

func place(err error) string {
	if c, ok := errors.AsType[*condition.Error](err); ok {
		return c.Path
	}
	return ""
}

func inCondition(path string) string {
	if path == "" {
		return "the condition: "
	}
	return "the condition's " + path + ": "
}

// refused gives the errors of compiling their places. They begin with that of a step.
func refused(file string, text []byte, d *model.Definition, err error) model.Errors {
	var all model.Errors
	for _, one := range flatten(err) {
		at, problem := d.Pos, one.Error()
		for s := range d.All() {
			head := fmt.Sprintf("line %d: step %s (%s): ", s.Pos.Line, s.Ref, s.Type)
			if rest, ok := strings.CutPrefix(problem, head); ok {
				at, problem = s.Pos, rest
				break
			}
		}
		hint := ""
		if _, ok := errors.AsType[*syntax.Error](one); ok {
			_, problem, hint = explain(one)
		}
		all = append(all, model.At(file, text, at, problem, hint))
	}
	return all
}

func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, flatten(one)...)
	}
	return all
}

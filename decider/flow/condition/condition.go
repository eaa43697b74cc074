// Package condition reads and evaluates the predicates of flows: the condition of a step, the cases
// of a switch, what an error handler is for, and the require of an atomic write.
//
//	5                                       equality; a boolean is always or never
//	{target: "${x}", less-than: 3}          all checks of a map have to pass
//	{any: [{when: absent}, {equals: a}]}    composition: not, any, all, check
//	{key: a, size: {in-range: [1, 3]}}      a part of the value is judged instead of it
//	{error-cause: {glob: "*timeout*"}}      the first error of the chain of causes that passes
//
// Invariants:
//
//   - Parse checks everything that does not depend on variables: words, patterns, ranges,
//     expressions, that no key is unknown. Its errors name the key, as does every error of
//     evaluation. A Condition is immutable.
//   - A value that is not there passes no check except when and what not turns around. What target,
//     key, index and the others do not find is such a value; a target that is missing, null or not
//     yet available too.
//   - Values that cannot be compared are neither less nor greater, which is no error; null is none
//     of both. Equality coerces as value.Equal does.
//   - assert raises an error where a check would be false.
//   - Evaluation pays from the budget of its expr.Env and is as deep as the predicate is written,
//     at most maxDepth.
//
// What AMP has and this engine has not is refused with the way out: tag, java-instance-of for
// classes other than those that stand for the types of values, and all of JSONPath but names and
// indices.
package condition

import (
	"errors"
	"fmt"

	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/value"
)

const maxDepth = 32

// ErrAssert is what the error of an assert that does not hold is.
var ErrAssert = errors.New("the assertion does not hold")

// Error says at which key of a condition something is wrong. Path is empty for the condition
// itself; Err is a *syntax.Error if a text could not be read.
type Error struct {
	Path string // such as any[0].regex
	Err  error
}

func (e *Error) Error() string {
	if e.Path == "" {
		return "condition: " + e.Err.Error()
	}
	return "condition " + e.Path + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Condition is a checked predicate.
type Condition struct{ root *test }

// Parse reads a predicate from decoded YAML or JSON. Errors are of type *Error.
func Parse(v any) (*Condition, error) {
	v, err := value.Of(v, value.Limits{})
	if err != nil {
		return nil, &Error{Err: err}
	}
	root, err := parseTest(v, "", 0)
	if err != nil {
		return nil, err
	}
	return &Condition{root}, nil
}

// Eval reports whether a subject passes. An error means that it could not be judged: an expression
// has no value, an assert does not hold, or the budget is used up.
func (c *Condition) Eval(env *expr.Env, s Subject) (bool, error) { return c.root.holds(env, s) }

// Subject is what a condition judges: a value, an error, or nothing. The zero value is nothing.
type Subject struct {
	present bool
	value   any
	failure *Failure
}

// Value is a subject that is there. It may be null.
func Value(v any) Subject { return Subject{present: true, value: v} }

// Failed is a subject that is an error, for error handlers. A nil one is nothing.
func Failed(f *Failure) Subject { return Subject{present: f != nil, failure: f} }

// Failure is an error that a flow can look at.
type Failure struct {
	Message string         // what text checks judge
	Names   []string       // its kinds, such as timeout and TimeoutException, for java-instance-of
	Fields  map[string]any // for error-field, besides message, type and cause
	Cause   *Failure
}

// maxCauses bounds a chain of causes, which could be a circle.
const maxCauses = 100

// text is what regex and glob judge.
func (s Subject) text() (string, bool) {
	if s.failure != nil {
		return s.failure.Message, true
	}
	text, err := value.Text(s.value)
	return text, s.present && err == nil
}

// plain is what equality and order judge.
func (s Subject) plain() any {
	if s.failure != nil {
		return s.failure.Message
	}
	return s.value
}

// weight is what a check of the subject costs. It is known at once: checks that go through a value
// pay for what they meet.
func (s Subject) weight() int {
	switch v := s.plain().(type) {
	case string:
		return len(v) / 1024
	case map[string]any: // which are sorted to go through them
		return len(v) / 16
	}
	return 0
}

func (s Subject) null() bool { return s.present && s.failure == nil && s.value == nil }

// test is one predicate.
type test struct {
	path     string
	implicit *expr.Expr // a bare value; the rest is empty then
	target   *expr.Expr
	retarget retarget
	checks   []check
}

// retarget leads from a subject to the one that is judged instead.
type retarget func(env *expr.Env, s Subject) (Subject, error)

// check judges a subject.
type check func(env *expr.Env, s Subject) (bool, error)

func (t *test) holds(env *expr.Env, s Subject) (bool, error) {
	if err := env.Spend(1); err != nil {
		return false, t.located(err)
	}
	if t.implicit != nil {
		return t.equals(env, s)
	}
	s, err := t.subject(env, s)
	if err != nil {
		return false, t.located(err)
	}
	for _, c := range t.checks {
		if ok, err := c(env, s); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func (t *test) equals(env *expr.Env, s Subject) (bool, error) {
	want, err := t.implicit.Eval(env)
	if err != nil {
		return false, t.located(err)
	}
	if always, ok := want.(bool); ok {
		return always, nil
	}
	if err := env.Spend(s.weight() + expr.Weigh(want)); err != nil {
		return false, t.located(err)
	}
	if _, ok := s.value.([]any); ok {
		return false, t.located(
			errors.New("a list is compared with a bare value: write equals or has-element"))
	}
	return s.present && value.Equal(s.plain(), want), nil
}

// subject goes to the target, then to the part of it.
func (t *test) subject(env *expr.Env, s Subject) (Subject, error) {
	if t.target != nil {
		v, err := t.target.Eval(env)
		if s, err = found(v, err); err != nil {
			return s, fmt.Errorf("target: %w", err)
		}
	}
	if t.retarget == nil {
		return s, nil
	}
	return t.retarget(env, s)
}

// found turns a name without a value into a subject that is not there.
func found(v any, err error) (Subject, error) {
	switch {
	case err == nil && v != nil:
		return Value(v), nil
	case err == nil, expr.Absent(err):
		return Subject{}, nil
	}
	return Subject{}, err
}

func (t *test) located(err error) error { return located(t.path, err) }

// located names a key, unless the error names one already.
func located(path string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Path: path, Err: err}
}

package expr

import (
	"errors"
	"fmt"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
)

// What an evaluation can fail with, besides operands that do not fit.
var (
	// ErrMissing: there is nothing of this name, or not this part of it.
	ErrMissing = errors.New("there is no such value")
	// ErrNull: the name leads to null, which may be used only left of ??.
	ErrNull = errors.New("the value is null")
	// ErrUnavailable: the name will have a value later. wait waits for it, everything else fails.
	ErrUnavailable = errors.New("the value is not yet available")
	// ErrCycle: the value of an input depends on itself.
	ErrCycle = errors.New("the value depends on itself")
	// ErrLimit: the budget of the Env is used up, or a result would be too large.
	ErrLimit = value.ErrLimit
)

// Defaults of Limits.
const (
	DefaultSteps = 100_000
	DefaultDepth = 100
)

// Limits bound all that is evaluated with one Env.
type Limits struct {
	// operators, names, transforms; large texts count more than once. Defaults to DefaultSteps
	Steps int
	Bytes int // of each result, as value.Size counts. Defaults to value.DefaultBytes
	Depth int // evaluations inside each other. Defaults to DefaultDepth
}

// A Resolver gives names their values. It is called with the whole path and returns the value of
// the first used steps of it; the rest is looked up in that value. used is at least 1.
//
// The error for a name that does not exist is Missing, for one that will exist later NotYet. A
// Resolver may evaluate other expressions with the env that it is given, so that their depth and
// cost count.
type Resolver interface {
	Resolve(env *Env, path value.Path) (v any, used int, err error)
}

// Vars is a Resolver for plain variables.
type Vars map[string]any

// Resolve returns the variable that the path begins with.
func (vars Vars) Resolve(_ *Env, path value.Path) (any, int, error) {
	v, ok := vars[path[0].Key]
	if !ok {
		return nil, 0, Missing(path[:1])
	}
	return v, 1, nil
}

// NameError says which name has no value, and Kind why: ErrMissing, ErrNull or ErrUnavailable.
type NameError struct {
	Kind error
	Path value.Path
	Hint string // may be empty
}

func (e *NameError) Error() string {
	s := syntax.Quote(e.Path.String()) + ": " + e.Kind.Error()
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

func (e *NameError) Unwrap() error { return e.Kind }

// Missing is the error of a Resolver for a name that does not exist.
func Missing(path value.Path) error { return &NameError{Kind: ErrMissing, Path: path} }

// NotYet is the error of a Resolver for a name that will have a value later.
func NotYet(path value.Path) error { return &NameError{Kind: ErrUnavailable, Path: path} }

// Absent reports whether an error means that there is no value: its name does not exist, is null,
// or will have one later.
func Absent(err error) bool {
	return !hard(err) &&
		(errors.Is(err, ErrMissing) || errors.Is(err, ErrNull) || errors.Is(err, ErrUnavailable))
}

// hard errors are those that nothing may catch.
func hard(err error) bool { return errors.Is(err, ErrLimit) }

// Error says where in which text an evaluation failed. Err is the cause.
type Error struct {
	Text   string // shortened if it is long
	Offset int    // bytes from the start of the text
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%q (at %d): %v", e.Text, e.Offset, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// located points an error at a place, unless it is about a place already.
func located(text string, offset int, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Text: syntax.Clip(text), Offset: offset, Err: err}
}

// Env is what expressions are evaluated in: the names, and the budget that is left. One Env is for
// one step of one run and for one goroutine.
type Env struct {
	names  Resolver
	limits Limits
	steps  int
	depth  int
}

// NewEnv returns an Env with a full budget. A nil Resolver knows no names, nil limits are the
// defaults.
func NewEnv(names Resolver, limits *Limits) *Env {
	e := &Env{names: names}
	if names == nil {
		e.names = Vars{}
	}
	if limits != nil {
		e.limits = *limits
	}
	e.limits.Steps = positiveOr(e.limits.Steps, DefaultSteps)
	e.limits.Bytes = positiveOr(e.limits.Bytes, value.DefaultBytes)
	e.limits.Depth = positiveOr(e.limits.Depth, DefaultDepth)
	return e
}

// Spend takes steps from the budget. Callers that do work of their own for an expression call it
// too.
func (e *Env) Spend(steps int) error {
	if steps > e.limits.Steps-e.steps {
		e.steps = e.limits.Steps
		return fmt.Errorf(
			"%w: more than %d steps of evaluation: split the work over several steps of the flow",
			ErrLimit, e.limits.Steps)
	}
	e.steps += max(steps, 0)
	return nil
}

// Weigh is how many steps it costs to look at a value as a whole: none for small ones.
func Weigh(v any) int {
	switch v := v.(type) {
	case string:
		return len(v) / 1024
	case []any, map[string]any:
		return value.Size(v) / 256
	}
	return 0
}

// Spent is how many steps were taken so far.
func (e *Env) Spent() int { return e.steps }

// ValueLimits are the limits of a single value.
func (e *Env) ValueLimits() value.Limits { return value.Limits{Bytes: e.limits.Bytes} }

func (e *Env) enter() error {
	if e.depth >= e.limits.Depth {
		return fmt.Errorf("%w: more than %d evaluations inside each other",
			ErrLimit, e.limits.Depth)
	}
	e.depth++
	return nil
}

func (e *Env) leave() { e.depth-- }

// fits checks the size of a text that is about to be made.
func (e *Env) fits(bytes int) error {
	if bytes > e.limits.Bytes {
		return fmt.Errorf("%w: the result has more than %d bytes", ErrLimit, e.limits.Bytes)
	}
	return nil
}

// Lookup returns the value that a path leads to. Null is an error too.
func (e *Env) Lookup(path value.Path) (any, error) {
	if err := e.Spend(1); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	v, used, err := e.names.Resolve(e, path)
	if err != nil {
		return nil, err
	}
	v, found, err := value.Get(v, path[min(max(used, 1), len(path)):])
	switch {
	case err != nil:
		return nil, &NameError{Kind: ErrMissing, Path: path, Hint: err.Error()}
	case !found:
		return nil, Missing(path)
	case v == nil:
		return nil, &NameError{Kind: ErrNull, Path: path, Hint: "give a default with ?? in a let"}
	}
	return v, nil
}

func positiveOr(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

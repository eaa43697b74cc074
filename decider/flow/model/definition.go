package model

import (
	"iter"
	"slices"

	"github.com/droverhq/drover/internal/retention"
)

// Definition is a workflow: a flow, what an inline workflow or foreach step runs, or a registered
// step type.
//
// Fields of type any hold plain data: nil, bool, int64, float64, string, []any, map[string]any.
// Texts may hold ${...}.
type Definition struct {
	// of a registered type: the word that names it
	ID string `json:"id,omitempty"`
	// also the group of retention if that has no hash
	Name        string               `json:"name,omitempty"`
	Description string               `json:"description,omitempty"`
	Shorthand   string               `json:"shorthand,omitempty"` // of a registered type
	Parameters  map[string]Parameter `json:"parameters,omitempty"`
	// of an inline workflow: evaluated in the outer scope
	Input  map[string]any `json:"input,omitempty"`
	Output any            `json:"output,omitempty"`
	// with a loop: tested for each element
	Condition  any             `json:"condition,omitempty"`
	OnError    []*Step         `json:"on_error,omitempty"`
	Timeout    string          `json:"timeout,omitempty"` // a duration
	Lock       *Lock           `json:"lock,omitempty"`
	Retention  *retention.Expr `json:"retention,omitempty"`
	Replayable Replayable      `json:"replayable,omitzero"`
	// IdempotentAll says that each step may run again unless it says otherwise, those of inline
	// blocks and workflows too.
	IdempotentAll bool    `json:"idempotent_all,omitempty"`
	Steps         []*Step `json:"steps,omitempty"`
	// Types are the registered types that the steps use, and those that these use, by name. Only a
	// root has any: those within Types have theirs in the same map. None of them comes to use
	// itself.
	Types map[string]*Definition `json:"types,omitempty"`
	Pos   Position               `json:"pos,omitzero"`
}

// Parameter declares an input of a flow or of a registered type.
type Parameter struct {
	Type        string `json:"type,omitempty"` // one of ValueTypes; empty is any
	Default     any    `json:"default,omitempty"`
	Required    bool   `json:"required,omitempty"`
	Description string `json:"description,omitempty"`
	Constraints []any  `json:"constraints,omitempty"` // conditions
}

// ValueTypes are the names that let and its like, and parameters, understand as types.
func ValueTypes() []string { return slices.Clone(valueTypes) }

var valueTypes = []string{
	"any", "boolean", "double", "duration", "instant", "integer", "list", "map", "string",
}

// Lock is a lock, or a semaphore of Limit places. Name and Scope are texts that may hold ${...}.
type Lock struct {
	Name  string `json:"name"`
	Scope string `json:"scope,omitempty"` // empty: that of the run
	Limit int    `json:"limit,omitempty"` // 0 is 1
}

// Replayable is what a workflow says of its replay. The zero value is enabled.
type Replayable struct {
	Disabled      bool `json:"disabled,omitempty"`
	FromStart     bool `json:"from_start,omitempty"`
	Automatically bool `json:"automatically,omitempty"`
}

// ReplayPoint is what a step says of replay points, done when it starts.
type ReplayPoint string

// The values of a step's replayable; empty is none.
const (
	FromHere     ReplayPoint = "from here"
	FromHereOnly ReplayPoint = "from here only"
	Reset        ReplayPoint = "reset"
)

// Idempotence tells whether a step may run again.
type Idempotence string

// The values of a step's idempotent; empty is the type's default. Nested is a default only: the
// runs within decide.
const (
	Idempotent    Idempotence = "yes"
	NotIdempotent Idempotence = "no"
	Nested        Idempotence = "nested"
)

// Step is one step. Which of Nested, Block, Then and Cases it has goes by its type.
type Step struct {
	// Ref is the path of indices from the definition that is a run's own, such as "2", "2.steps.0",
	// "2.then", "2.cases.1", "on-error.0", "2.on-error.0". Within Types it begins anew.
	Ref  string `json:"ref"`
	Type string `json:"type"` // a name of Types() or a key of the root's Types; never an alias
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	// Inputs are those of the shorthand, of the key input, and all keys that nobody else knows.
	Inputs    map[string]any `json:"inputs,omitempty"`
	Condition any            `json:"condition,omitempty"`
	Output    any            `json:"output,omitempty"`
	// Next is an id or a reserved word. Of goto and retry it is where they go.
	Next string `json:"next,omitempty"`
	// Timeout is a duration. Of retry it is counted from the first retry.
	Timeout    string      `json:"timeout,omitempty"`
	OnError    []*Step     `json:"on_error,omitempty"`
	Replay     ReplayPoint `json:"replay,omitempty"`
	Idempotent Idempotence `json:"idempotent,omitempty"`
	Metadata   any         `json:"metadata,omitempty"`
	// Retention changes that of the run: of a workflow step without steps, and of fail.
	Retention *retention.Expr `json:"retention,omitempty"`

	Loop   *Loop       `json:"loop,omitempty"`   // of workflow with a target, and foreach
	Nested *Definition `json:"nested,omitempty"` // of workflow and foreach: what each run of it is
	// of subworkflow, and of if with steps: they share the run's variables
	Block []*Step `json:"block,omitempty"`
	Then  *Step   `json:"then,omitempty"`  // of if in one line
	Cases []*Step `json:"cases,omitempty"` // of switch: the first whose condition holds

	Pos Position `json:"pos,omitzero"`
}

// Loop is over what a workflow or foreach step runs.
type Loop struct {
	Target any    `json:"target"` // a list, "M..N" or an expression
	Var    string `json:"var"`    // "target" unless named
	// keys of each element that become variables of these names
	Spread      []string `json:"spread,omitempty"`
	IndexVar    string   `json:"index_var,omitempty"` // "target_index" unless named
	Concurrency string   `json:"concurrency,omitempty"`
	// names and first values; concurrency is 1 then
	Reducing map[string]any `json:"reducing,omitempty"`
}

// All are the steps with all that is within them, handlers too, and those of nested definitions;
// not those of Types.
func (d *Definition) All() iter.Seq[*Step] {
	return func(yield func(*Step) bool) { walkAll(d.OnError, walkAll(d.Steps, true, yield), yield) }
}

func walkAll(steps []*Step, more bool, yield func(*Step) bool) bool {
	for _, s := range steps {
		more = more && yield(s)
		more = walkAll(s.Block, more, yield)
		more = walkAll(s.Cases, more, yield)
		if s.Then != nil {
			more = walkAll([]*Step{s.Then}, more, yield)
		}
		if s.Nested != nil {
			more = walkAll(s.Nested.Steps, more, yield)
			more = walkAll(s.Nested.OnError, more, yield)
		}
		more = walkAll(s.OnError, more, yield)
	}
	return more
}

// reserved are the words that are no ids, in any case of letters.
var reserved = []string{"start", "end", "last", "here", "exit", "default"}

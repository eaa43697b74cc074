package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/expr"
)

// Failure is an error of a run: what handlers test and ${workflow.error} shows.
type Failure struct {
	Names   []string `json:"names,omitempty"` // its kinds, the most precise first
	Message string   `json:"message"`
	Step    string   `json:"step,omitempty"` // ref of the step that failed first
	Fields  Value    `json:"fields,omitzero"`
	Cause   *Failure `json:"cause,omitempty"`
}

// Names of failures. Those of the language that this one comes from are aliases.
const (
	NameTimeout     = "timeout"
	NameCanceled    = "canceled" // it has given in to a request
	NameInterrupted = "interrupted"
	NameRetries     = "retries-exceeded"
	NameReplay      = "not-replayable"
	NameRequire     = "requirement"
	NameLimit       = "limit"
	NameFail        = "fail"
	NameExpression  = "expression"
	NameNoCase      = "no-case"
	NameChild       = "child"
	NameRefused     = "refused"
	NameStatus      = "status"
)

var aliases = map[string]string{
	NameTimeout: "TimeoutException", NameInterrupted: "DanglingWorkflowException",
	NameRetries: "RetriesExceeded",
}

const (
	maxMessage = 4096
	maxName    = 200
	maxCauses  = 16
)

func (f *Failure) Error() string { return f.Message }

// Has tells whether the failure, or one that caused it, has a name.
func (f *Failure) Has(name string) bool {
	for n := 0; f != nil && n <= maxCauses; f, n = f.Cause, n+1 {
		if slices.Contains(f.Names, name) {
			return true
		}
	}
	return false
}

// Cut is the beginning of a text, without a broken character.
func Cut(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// NewFailure makes a failure of a kind. The alias of the name is added.
func NewFailure(name, message string) *Failure {
	message, name = Cut(message, maxMessage), Cut(name, maxName)
	f := &Failure{Message: message}
	if name != "" {
		f.Names = []string{name}
	}
	if alias := aliases[name]; alias != "" {
		f.Names = append(f.Names, alias)
	}
	return f
}

// Failuref is NewFailure with a message that is made of a format.
func Failuref(name, format string, args ...any) *Failure {
	return NewFailure(name, fmt.Sprintf(format, args...))
}

// Because sets the cause, of which only so much is kept.
func (f *Failure) Because(cause *Failure) *Failure {
	n := 0
	for c := cause; c != nil; c = c.Cause {
		if n++; n >= maxCauses {
			short := *cause
			short.Cause = nil
			f.Cause = &short
			return f
		}
	}
	f.Cause = cause
	return f
}

// FailureOf makes a failure of what an evaluation or a body returned.
func FailureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if errors.Is(err, expr.ErrLimit) {
		return NewFailure(NameLimit, err.Error())
	}
	return NewFailure(NameExpression, err.Error())
}

// Subject is the failure as conditions see it.
func (f *Failure) Subject() *condition.Failure {
	if f == nil {
		return nil
	}
	fields, _ := f.Fields.V.(map[string]any)
	return &condition.Failure{
		Message: f.Message,
		Names:   f.Names,
		Fields:  fields,
		Cause:   f.Cause.Subject(),
	}
}

// Shown is the failure as ${workflow.error} and the end of its run show it: message, type, step,
// fields and cause.
func (f *Failure) Shown() map[string]any {
	m := map[string]any{"message": f.Message}
	if len(f.Names) > 0 {
		m["type"] = f.Names[0]
	}
	if f.Step != "" {
		m["step"] = f.Step
	}
	if f.Fields.V != nil {
		m["fields"] = f.Fields.V
	}
	if f.Cause != nil {
		m["cause"] = f.Cause.Shown()
	}
	return m
}

package schemas

import "fmt"

// Code is the machine-readable half of an error. Codes are append-only.
type Code string

// The codes.
const (
	CodeInvalid        Code = "invalid_argument"
	CodeNotFound       Code = "not_found"
	CodeAlreadyStarted Code = "already_started"
	CodeClosed         Code = "closed"
	CodeUnavailable    Code = "unavailable"
	CodeTimeout        Code = "timeout"
	CodeTooLarge       Code = "too_large"
	CodeUnsupported    Code = "unsupported"
	CodeInternal       Code = "internal"
	CodeConflict       Code = "conflict"
	CodePermission     Code = "permission_denied"
	CodeDeprecated     Code = "type_deprecated"
	CodeLimit          Code = "limit_exceeded"
	CodeAlreadyExists  Code = "already_exists"
)

// Error is how every refusal travels: what was wrong, in which field, and the way out.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
	Hint    string `json:"hint,omitempty"`
	// WorkflowID and Run say which execution the error is about, where it is about one.
	WorkflowID string `json:"workflowId,omitempty"`
	Run        string `json:"run,omitempty"`
	// Final says that the server which refused will go on refusing for a while, so that asking it
	// again is no use.
	Final bool `json:"final,omitempty"`
}

// Error implements error.
func (e *Error) Error() string {
	s := e.Message
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Is matches errors of the same code, so that errors.Is(err, &Error{Code: CodeNotFound}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// Errorf returns an error of a code.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// InField names the field at fault.
func (e *Error) InField(field string) *Error { e.Field = field; return e }

// WithHint adds the way out.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// About names the execution.
func (e *Error) About(workflowID, run string) *Error {
	e.WorkflowID, e.Run = workflowID, run
	return e
}

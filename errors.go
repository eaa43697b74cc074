package drover

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/schemas"
)

// The sentinel errors; test with errors.Is. Each stands for one code of [Error].
var (
	// ErrInvalid: an argument breaks a rule; the text names it and the allowed form.
	ErrInvalid = errors.New("invalid argument")
	// ErrNotFound: the namespace has no such workflow or run.
	ErrNotFound = errors.New("not found")
	// ErrAlreadyStarted: a run of the workflow id is open. [Error.Run] names it.
	ErrAlreadyStarted = errors.New("already started")
	// ErrClosed: the run has ended, so that nothing can be done to it any more.
	ErrClosed = errors.New("the run is closed")
	// ErrUnavailable: nobody serves the namespace, or NATS cannot be reached.
	ErrUnavailable = errors.New("nobody answers")
	// ErrTimeout: no answer came in time. Of a write it is unknown whether it was done.
	ErrTimeout = errors.New("no answer in time")
	// ErrTooLarge: an input exceeds what a message may hold.
	ErrTooLarge = errors.New("too large")
	// ErrUnsupported: the server does not know the operation or the version.
	ErrUnsupported = errors.New("not supported by the server")
	// ErrConflict: the execution is not in a state that allows it, such as the replay of a run that
	// is open.
	ErrConflict = errors.New("conflict")
	// ErrPermission: the NATS server refuses a subject to this user.
	ErrPermission = errors.New("permission denied")
	// ErrAlreadyExists: something else is registered under that name.
	ErrAlreadyExists = errors.New("already exists")
	// ErrDeprecated: the type may not be used any more.
	ErrDeprecated = errors.New("the type is deprecated")
	// ErrLimit: there are as many as there may be.
	ErrLimit = errors.New("limit exceeded")
	// ErrInternal: the server or its answer is at fault.
	ErrInternal = errors.New("internal error")
)

// sentinels is the one table from wire codes to errors. Append-only, as the codes are.
var sentinels = map[schemas.Code]error{
	schemas.CodeInvalid:        ErrInvalid,
	schemas.CodeNotFound:       ErrNotFound,
	schemas.CodeAlreadyStarted: ErrAlreadyStarted,
	schemas.CodeClosed:         ErrClosed,
	schemas.CodeUnavailable:    ErrUnavailable,
	schemas.CodeTimeout:        ErrTimeout,
	schemas.CodeTooLarge:       ErrTooLarge,
	schemas.CodeUnsupported:    ErrUnsupported,
	schemas.CodeConflict:       ErrConflict,
	schemas.CodePermission:     ErrPermission,
	schemas.CodeAlreadyExists:  ErrAlreadyExists,
	schemas.CodeDeprecated:     ErrDeprecated,
	schemas.CodeLimit:          ErrLimit,
	schemas.CodeInternal:       ErrInternal,
}

// Error is what a call returns when it failed.
type Error struct {
	// Op is what was asked: "connect", "start", "signal", "result", "history" and so on.
	Op string
	// ID and Run name the execution, where the call was about one. With [ErrAlreadyStarted] Run is
	// the open run.
	ID, Run string
	// Code is the machine-readable kind; empty if the caller's ctx was canceled. A newer server may
	// send codes that this version does not know; they match no sentinel.
	Code schemas.Code
	// Hint says what to do next. It may be empty.
	Hint string
	// Err is what went wrong: a [*schemas.Error] if the server refused, else an error of the
	// connection or of ctx.
	Err error
}

// Error tells operation, execution, what was wrong and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("drover: ")
	b.WriteString(e.Op)
	if e.ID != "" {
		b.WriteString(" " + strconv.Quote(e.ID))
	}
	if e.Run != "" {
		b.WriteString(" run " + e.Run)
	}
	b.WriteString(": " + e.Message())
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Message tells what was wrong, without operation, execution and hint.
func (e *Error) Message() string {
	if refusal, ok := errors.AsType[*schemas.Error](e.Err); ok {
		if refusal.Field != "" && !strings.Contains(refusal.Message, refusal.Field) {
			return refusal.Field + ": " + refusal.Message
		}
		return refusal.Message
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Is matches the sentinel of the code.
func (e *Error) Is(target error) bool {
	s := sentinels[e.Code]
	return s != nil && s == target
}

// causes maps what can go wrong on this side to codes and hints. The first match counts: an unknown
// outcome that a refused permission explains is a matter of permission.
var causes = []struct {
	err  error
	code schemas.Code
	hint string
}{
	{natsconn.ErrPermission, schemas.CodePermission, ""},
	{natsconn.ErrClosed, schemas.CodeUnavailable, "the client is closed, connect anew"},
	{natsconn.ErrNoResponders, schemas.CodeUnavailable, hintNobody},
	{
		natsconn.ErrDisconnected,
		schemas.CodeUnavailable,
		"check that NATS is up; the client reconnects by itself",
	},
	{natsconn.ErrNoConnection, schemas.CodeUnavailable, ""},
	{
		natsconn.ErrTooLarge,
		schemas.CodeTooLarge,
		"hand over a reference instead of the data, or raise the server's max_payload",
	},
	{natsconn.ErrInvalid, schemas.CodeInvalid, ""},
	{subject.ErrInvalidID, schemas.CodeInvalid, ""},
	{errEncode, schemas.CodeInvalid, ""},
	{
		errDecode,
		schemas.CodeInvalid,
		"the run has completed: hand over a pointer to what it returns, or a *schemas.Payload for the bytes",
	},
	{context.Canceled, "", ""},
	{natsconn.ErrTimeout, schemas.CodeTimeout, hintSilent},
	{context.DeadlineExceeded, schemas.CodeTimeout, hintSilent},
}

// hintNobody is about a namespace that nobody serves, which is also what one looks like that does
// not exist.
const hintNobody = `nobody serves this namespace there: start "drover server", or check its name ` +
	`("drover namespace list" has them) and the NATS address`

// hintSilent is about a server that stands still: whoever is gone is known to be.
const hintSilent = `wait longer, or see by "drover doctor" whether a server has stopped`

// newError gives err the form that callers see.
func newError(q query, err error) *Error {
	e := &Error{Op: q.verb, ID: q.id, Run: q.run, Code: schemas.CodeInternal, Err: err}
	if refusal, ok := errors.AsType[*schemas.Error](err); ok {
		e.Code, e.Hint = refusal.Code, refusal.Hint
		if refusal.WorkflowID != "" {
			e.ID = refusal.WorkflowID
		}
		if refusal.Run != "" {
			e.Run = refusal.Run
		}
		return e
	}
	for _, c := range causes {
		if errors.Is(err, c.err) {
			e.Code, e.Hint = c.code, c.hint
			break
		}
	}
	if e.Code == schemas.CodeUnavailable && errors.Is(err, context.Canceled) &&
		!errors.Is(err, natsconn.ErrClosed) {
		e.Code = "" // the caller has given up; the hint still says why there was no answer by then
	}
	if refused, ok := errors.AsType[*natsconn.RefusedError](err); ok {
		e.Hint = refused.Hint()
	}
	if e.Code == schemas.CodeTimeout && !q.open.IsZero() && time.Since(q.open) < hold {
		e.Hint = "the run had not ended by then: ask why, or wait longer"
	}
	return e
}

// WorkflowError says that a run ended and did not complete.
type WorkflowError struct {
	// ID and Run name the execution; Run is the last of a chain that continued as new.
	ID, Run string
	// Status is failed, canceled, terminated or timedOut.
	Status schemas.Status
	// Reason is the short word of who ended it; Details are what came with it.
	Reason  string
	Details schemas.Payload
}

// Error tells how the run ended and why.
func (e *WorkflowError) Error() string {
	how := statusWords(e.Status)
	s := fmt.Sprintf("drover: workflow %q run %s: %s", e.ID, e.Run, how)
	if e.Reason != "" && e.Reason != how { // of one that was canceled the service says no more
		s += ": " + e.Reason
	}
	return s
}

// Unwrap returns the reason of a run that failed as a fault: errors.Is finds the one of a contract.
func (e *WorkflowError) Unwrap() error {
	if e.Status != schemas.StatusFailed {
		return nil
	}
	return &contract.FaultError{Reason: e.Reason, Details: e.Details}
}

func statusWords(s schemas.Status) string {
	switch s {
	case schemas.StatusTimedOut:
		return "timed out"
	case schemas.StatusContinuedAsNew:
		return "continued as new"
	default:
		return string(s)
	}
}

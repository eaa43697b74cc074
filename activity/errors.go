package activity

import (
	"errors"
	"fmt"
	"strings"

	"github.com/droverhq/drover/schemas"
)

// Errors that an activity meets: as the cause of its context (context.Cause) or as the result of
// [Heartbeat].
var (
	// ErrCanceled says that the decider requested the activity's end. An activity that obeys
	// returns it, or [Canceled] with details; it may also finish its work and succeed.
	ErrCanceled = errors.New("activity: its cancellation was requested")
	// ErrGone says that the activity is closed, its heartbeat or its workflow is over, or that
	// another attempt is at work: whatever this one returns is not reported, but for the success of
	// one that has not heard it by [Heartbeat], which becomes a dead letter.
	ErrGone = errors.New("activity: it is closed, its outcome is no longer wanted")
	// ErrStartToClose says that the attempt has taken longer than it may.
	ErrStartToClose = errors.New("activity: start-to-close timeout")
	// ErrCloseBy says that the time for the activity as a whole is over.
	ErrCloseBy = errors.New("activity: schedule-to-close timeout")
	// ErrDrained says that the worker stops and Options.DrainTimeout has passed; the task goes to
	// another worker.
	ErrDrained = errors.New("activity: the worker stops")
	// ErrNoActivity is returned by [Heartbeat] for a context that is not an activity's.
	ErrNoActivity = errors.New(
		"activity: the context is not that of a running activity: pass the one that the function was given")
)

// Errors of [Worker.Run].
var (
	// ErrRunning says that the worker runs already.
	ErrRunning = errors.New(
		"activity: the worker runs already: make another one, or wait until Run has returned")
	// ErrDrainTimeout says that the worker has stopped, but not all its activities had ended in
	// time. Their tasks were handed back.
	ErrDrainTimeout = errors.New("activity: drain timeout")
)

// Reasons of failures that the worker itself reports. A retry policy may name them as not
// retryable. Append-only.
const (
	// ReasonPanic: the function panicked; the details hold the stack.
	ReasonPanic = "panic"
	// ReasonBadInput: the input does not fit the function's input type.
	ReasonBadInput = "bad-input"
	// ReasonBadResult: the result cannot be encoded.
	ReasonBadResult = "bad-result"
	// ReasonTooLarge: the result is larger than the service takes.
	ReasonTooLarge = "result-too-large"
	// ReasonPayload: the input is large, kept elsewhere, and could not be fetched.
	ReasonPayload = "input-not-fetched"
)

const (
	maxReason  = 256
	maxDetails = 32 << 10 // of texts that the worker writes: errors and stacks
)

// Failure is an activity's failure as the decider sees it; see [Fail].
type Failure struct {
	Reason  string
	Details schemas.Payload
}

// Error gives the reason, and the details if they are text.
func (f *Failure) Error() string {
	if len(f.Details) == 0 || len(f.Details) > maxReason {
		return f.Reason
	}
	return f.Reason + ": " + string(f.Details)
}

// Fail returns an error that fails the activity for a reason of at most 256 bytes, which a decider
// or a retry policy can compare. details may be nil, a [schemas.Payload], bytes, text, an error, or
// any value that encoding/json takes. It may be wrapped.
//
// Any other error of an activity becomes a failure with the error's text as reason, cut to 256
// bytes, and the whole text as details.
func Fail(reason string, details any) error {
	return &Failure{Reason: reason, Details: describe(details)}
}

// final marks an error as one that no other attempt mends.
type final struct{ error }

func (f *final) Unwrap() error { return f.error }

// Final returns an error that fails the activity for good: there is no other attempt, whatever its
// retry policy says. Reason, details and text are those of err, which [errors.Is] and
// [errors.AsType] find. It may be wrapped. Final(nil) is nil.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return &final{err}
}

// canceled carries the details of an obeyed cancellation.
type canceled struct{ details schemas.Payload }

func (c *canceled) Error() string { return ErrCanceled.Error() }
func (c *canceled) Unwrap() error { return ErrCanceled }

// Canceled returns an error that is [ErrCanceled] and says in what state the activity left its
// work. details are as in [Fail].
func Canceled(details any) error { return &canceled{describe(details)} }

// failureOf turns any error of a function into what is reported.
func failureOf(err error) (reason string, details schemas.Payload) {
	if f, ok := errors.AsType[*Failure](err); ok {
		reason = bound(f.Reason, maxReason)
		if reason == "" {
			reason = schemas.ReasonFailed
		}
		return reason, f.Details
	}
	text := err.Error()
	if c, ok := errors.AsType[*canceled](err); ok && len(c.details) > 0 {
		// nobody has requested it, so it is a failure
		return bound(text, maxReason), c.details
	}
	reason = bound(text, maxReason)
	if reason == "" { // the type says more than nothing
		if f, ok := err.(*final); ok {
			err = f.error
		}
		reason = fmt.Sprintf("%T", err)
	}
	return reason, schemas.Text(bound(text, maxDetails))
}

// describe encodes details. It never fails: what JSON cannot express is printed.
func describe(details any) schemas.Payload {
	switch v := details.(type) {
	case string:
		return schemas.Text(v)
	case error:
		return schemas.Text(v.Error())
	}
	p, err := encode(details)
	if err != nil {
		return schemas.Text(fmt.Sprintf("%+v", details))
	}
	return p
}

// bound cuts text to n bytes and leaves no broken character.
func bound(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	return strings.ToValidUTF8(text, "")
}

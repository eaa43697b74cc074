package contract

import (
	"fmt"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// FaultOf is a declared way to fail; see [Fault].
type FaultOf[D any] struct{ reason string }

// reserved are the reasons of failures that brokers and workers write themselves.
var reserved = []string{
	schemas.ReasonInterrupted, schemas.ReasonFailed, string(schemas.TimeoutStartToClose),
	string(schemas.TimeoutScheduleToStart), string(schemas.TimeoutScheduleToClose),
	string(schemas.TimeoutHeartbeat), "panic", "bad-input", "bad-result", "result-too-large",
	"input-not-fetched",
}

// Fault declares a failure that is a result: whoever calls expects it, and nobody tries again. The
// reason, 1 to [schemas.MaxIDLen] bytes, tells it apart in histories. D is what it says beside that;
// struct{} is nothing.
//
// An activity or a workflow returns the fault itself, or what [FaultOf.With] makes of it, wrapped or
// not. Whoever called it, in whatever process, finds it by [errors.Is]:
//
//	if errors.Is(err, Declined) { … }
//
// Fault panics on mistakes of the program.
func Fault[D any](reason string) *FaultOf[D] {
	f := &FaultOf[D]{reason: reason}
	must(f.of(), checkName(reason, schemas.MaxIDLen))
	if slices.Contains(reserved, reason) {
		must(f.of(), "brokers and workers report failures of their own by this name: choose another")
	}
	must(f.of(), checkType[D]("details"))
	return f
}

// Reason tells the fault apart from others.
func (f *FaultOf[D]) Reason() string { return f.reason }

// Error returns the reason.
func (f *FaultOf[D]) Error() string { return f.reason }

// Is tells whether the target is a fault of the same reason, for [errors.Is].
func (f *FaultOf[D]) Is(target error) bool { return sameReason(f.reason, target) }

// With returns the fault with details, a [FaultError]. Details that have no JSON form, such as a
// NaN, are a mistake of the program: With panics.
func (f *FaultOf[D]) With(details D) error {
	p, err := encode(f.of(), "details", details)
	if err != nil {
		panic(err.Error())
	}
	return &FaultError{Reason: f.reason, Details: p}
}

// Details returns what err says about this fault. It is false if err is another error, or if the
// details are no D. A fault without details has the zero value.
func (f *FaultOf[D]) Details(err error) (details D, ok bool) {
	found, ok := find(err, f.reason)
	if !ok {
		return details, false
	}
	details, err = decode[D](f.of(), "details", found.Details)
	return details, err == nil
}

func (f *FaultOf[D]) of() string { return fmt.Sprintf("fault %q", f.reason) }

func (f *FaultOf[D]) fault() *FaultError { return &FaultError{Reason: f.reason} }

// FaultError is a fault as it travels: in a report, in an event, to whoever called. Workers make
// one of what they are told, so that [errors.Is] and [FaultOf.Details] work on it.
type FaultError struct {
	Reason  string
	Details schemas.Payload
}

// maxShown bounds the details that an error's text shows, in bytes.
const maxShown = 256

// Error returns the reason, and the details if they are short.
func (e *FaultError) Error() string {
	if len(e.Details) == 0 || len(e.Details) > maxShown {
		return e.Reason
	}
	return e.Reason + ": " + string(e.Details)
}

// Is tells whether the target is a fault of the same reason, for [errors.Is].
func (e *FaultError) Is(target error) bool { return sameReason(e.Reason, target) }

func (e *FaultError) fault() *FaultError { return e }

// AsFault returns the first fault in the tree of err, as a worker reports it. A [FaultOf] that was
// returned as it is has no details.
func AsFault(err error) (*FaultError, bool) { return find(err, "") }

// faulty is what both kinds of faults have.
type faulty interface{ fault() *FaultError }

func sameReason(reason string, target error) bool {
	t, ok := target.(faulty)
	return ok && t.fault().Reason == reason
}

// find looks for a fault in the tree of err, in the order of [errors.Is]: any one, or that of a
// reason.
func find(err error, reason string) (*FaultError, bool) {
	if f, ok := err.(faulty); ok && (reason == "" || f.fault().Reason == reason) {
		return f.fault(), true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return find(e.Unwrap(), reason)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if f, ok := find(err, reason); ok {
				return f, true
			}
		}
	}
	return nil, false
}

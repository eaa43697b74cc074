package decider

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/droverhq/drover/decider/internal/history"
	"github.com/droverhq/drover/decider/internal/listen"
)

// The sentinel errors of this package; test with errors.Is.
var (
	// ErrInvalidOptions is returned by Run for options that New could not accept. The text names
	// the field.
	ErrInvalidOptions = errors.New("invalid decider options")
	// ErrNoDeciders is returned by Run of a worker without any registered type or source of types.
	ErrNoDeciders = errors.New("no decider is registered: call Register or Follow before Run")
	// ErrRunning is returned by Run while another Run of the same worker goes on.
	ErrRunning = errors.New("the decider worker runs already")
	// ErrDrainTimeout is returned by Run when deciders had to be canceled to stop in time.
	ErrDrainTimeout = errors.New(
		"deciders were canceled, they did not finish within Options.DrainTimeout")

	// ErrTimeout is the cause with which the context of a Decide ends that takes longer than
	// Options.Timeout.
	ErrTimeout = errors.New("Decide took longer than Options.Timeout")
	// ErrDeadline is the cause with which the context of a Decide ends when the broker has stopped
	// waiting.
	ErrDeadline = errors.New("the broker's deadline for the decision has passed")
	// ErrStopped is the cause with which the context of a Decide ends when its worker stops.
	ErrStopped = errors.New("the decider worker was stopped before Decide returned")

	// ErrNonDeterministic says that the decider's code does not do what the history says it did: a
	// Decide returns an error that wraps it, with what differs. The next task of the run goes to
	// another worker, if there is one, and after three times in a row the run is parked.
	ErrNonDeterministic = errors.New("the code does not do what the history says")

	// ErrFeatures is returned by Run if a broker of the namespace lacks what a decider [Needs].
	ErrFeatures = listen.ErrFeatures

	// ErrInvalidTask reports a decision task that contradicts itself.
	ErrInvalidTask = errors.New("invalid decision task")
	// ErrHistory reports that the events before a task's window could not be read.
	ErrHistory = history.Err
	// ErrPayload reports that a large payload could not be fetched or handed over.
	ErrPayload = errors.New("a large payload could not be moved")
)

// errGoexit stands for a Decide that neither returned nor panicked.
var errGoexit = errors.New("Decide ended its goroutine by runtime.Goexit: return an error instead")

// errReplayGoexit is the same of a Replay.
var errReplayGoexit = errors.New(
	"a Replay ended its goroutine by runtime.Goexit: return an error instead")

// panicError is a recovered panic.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// caught makes an error of a panic. Code of users is called after it, by defer.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = &panicError{value: p, stack: debug.Stack()}
	}
}

// Bounds of what a reply carries of an error, in bytes. A history keeps it for ever.
const (
	maxReason  = 1 << 10
	maxDetails = 16 << 10
)

// clip cuts s to n bytes of valid UTF-8.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n-len("…")]
		return strings.ToValidUTF8(s, "") + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

package workflow

import (
	"errors"
	"io"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow/internal/machine"
	"github.com/droverhq/drover/schemas"
)

var (
	// ErrCanceled is what calls return in a scope that was canceled, and once they have been.
	ErrCanceled = machine.ErrCanceled
	// ErrTimeout is what calls return in a scope whose time is over; see [WithTimeout].
	ErrTimeout = errors.New("the time of the scope is over")
)

// Context is the scope in which code asks for something. It is passed on by value.
type Context struct {
	run     *run
	scope   *machine.Scope
	values  *value
	options []contract.Option
}

type value struct {
	before *value
	key, v any
}

// CancelFunc cancels a scope. What is open in it is asked to end; that it has ended is told by its
// futures. Further calls do nothing.
type CancelFunc func()

// Err returns why the scope is canceled: ErrCanceled or ErrTimeout; nil if it is not.
func (c Context) Err() error { return c.scope.Err() }

// Cause returns what the scope was canceled with; see [WithCancelCause]. Else it is that of Err.
func (c Context) Cause() error { return c.scope.Cause() }

// Value returns what [WithValue] has set; nil if nothing has.
func (c Context) Value(key any) any {
	for v := c.values; v != nil; v = v.before {
		if v.key == key {
			return v.v
		}
	}
	return nil
}

// Info says which run it is.
type Info struct {
	WorkflowID string
	Run        string
	Type       string
	// FirstRun is the first run of the chain that this one continues; Run if it continues none.
	FirstRun string
	Started  time.Time
}

// Info returns what the run is.
func (c Context) Info() Info { return c.run.info }

// WithCancel returns a scope inside that of the parent, and what cancels it.
func WithCancel(parent Context) (Context, CancelFunc) {
	inner, cancel := WithCancelCause(parent)
	return inner, func() { cancel(nil) }
}

// WithCancelCause is WithCancel with a cause for [Context.Cause].
func WithCancelCause(parent Context) (Context, func(cause error)) {
	inner := parent
	inner.scope = machine.NewScope(parent.scope)
	return inner, func(cause error) { inner.scope.Cancel(ErrCanceled, cause) }
}

// WithTimeout returns a scope that is canceled after d, by a timer of the run, unless it is
// canceled before. Call the function when the scope is over: it takes the timer back.
func WithTimeout(parent Context, d time.Duration) (Context, CancelFunc) {
	return WithDeadline(parent, Now(parent).Add(d))
}

// WithDeadline is WithTimeout with a point in time.
func WithDeadline(parent Context, at time.Time) (Context, CancelFunc) {
	inner, cancel := WithCancel(parent)
	inner.run.m.Timer(inner.scope, schemas.At(at)).Then(func(o machine.Outcome) {
		if o.Kind == machine.Succeeded {
			inner.scope.Cancel(ErrTimeout, ErrTimeout)
		}
	})
	return inner, cancel
}

// WithoutCancel returns a scope that is not canceled with its parent: for what is to be put right
// after a cancellation.
func WithoutCancel(parent Context) Context {
	parent.scope = machine.NewScope(nil)
	return parent
}

// WithValue returns a context in which a key has a value.
func WithValue(parent Context, key, v any) Context {
	parent.values = &value{before: parent.values, key: key, v: v}
	return parent
}

// WithOptions returns a context in which calls of activities have options: beside those of their
// contracts, and overridden by those of a call.
func WithOptions(parent Context, opts ...contract.Option) Context {
	all := make([]contract.Option, 0, len(parent.options)+len(opts))
	parent.options = append(append(all, parent.options...), opts...)
	return parent
}

// Log returns a logger, which is silent while a decision is replayed: ask for it anew each time.
// Lines of a decision that fails, or is made twice, may be written twice. It is the one function of
// this package with a [Context] that the function of a [Do] may call.
func Log(ctx Context) logrus.FieldLogger {
	if ctx.run.m.Live() {
		return ctx.run.log
	}
	return silent
}

var silent = &logrus.Logger{
	Out:       io.Discard,
	Formatter: &logrus.TextFormatter{},
	Level:     logrus.PanicLevel,
}

package machine

import (
	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
	"github.com/droverhq/drover/schemas"
)

// Waitable is what a coroutine can wait for.
type Waitable interface {
	// Ready tells whether there is nothing to wait for.
	Ready() bool
	// waiting are those that are woken once it may be ready.
	waiting() *coroutine.Waiters
}

// Outcome is how something that the code has asked for has ended.
type Outcome struct {
	Kind   Kind
	Result schemas.Payload
	// Reason and Details say why it did not succeed. Of a refusal, Reason is the cause.
	Reason  string
	Details schemas.Payload
	// Retry is the pause before the next attempt of a step; 0 if there is none.
	Retry schemas.Duration
}

// Kind says how something has ended.
type Kind uint8

const (
	Succeeded Kind = iota + 1
	Failed
	TimedOut // Reason is the type of the timeout
	Canceled
	Refused // it never began
	Terminated
)

var kinds = [...]string{
	"is open",
	"succeeded",
	"failed",
	"timed out",
	"was canceled",
	"was refused",
	"was terminated",
}

// String returns a word or two.
func (k Kind) String() string {
	if int(k) >= len(kinds) {
		return "is unknown"
	}
	return kinds[k]
}

// Future is something that the code has asked for, or what a coroutine returns.
type Future struct {
	Name    string // of what was asked for, such as charge#2
	outcome Outcome
	value   any // of a coroutine
	err     error
	ready   bool
	waiters coroutine.Waiters
	// cancel asks for its end; nil if it cannot be canceled, or has ended.
	cancel func()
	scope  *Scope
	then   func(Outcome)

	child, begun bool   // of a child: that it is one, and that it has begun
	run          string // of a child, once it is known
	abandoned    bool
}

// Ready tells whether it has ended.
func (f *Future) Ready() bool { return f.ready }

// Outcome returns how it has ended; it is the zero value before.
func (f *Future) Outcome() Outcome { return f.outcome }

// Value returns what the function of a coroutine has returned.
func (f *Future) Value() (any, error) { return f.value, f.err }

func (f *Future) waiting() *coroutine.Waiters { return &f.waiters }

// Cancel asks for its end, if it has not ended yet.
func (f *Future) Cancel() {
	if f.cancel != nil && !f.ready {
		f.cancel()
	}
}

// Abandon leaves it alone when it is canceled: it is not asked to end, nor waited for.
func (f *Future) Abandon() {
	f.abandoned = true
	f.cancel = func() { f.settle(Outcome{Kind: Canceled}) }
}

// begin notes that a child has begun.
func (f *Future) begin() {
	f.begun = true
	f.waiters.Wake()
}

// Then has a function called when it ends, by whoever lets it end.
func (f *Future) Then(do func(Outcome)) {
	if f.ready {
		do(f.outcome)
		return
	}
	f.then = do
}

// settle ends it, once.
func (f *Future) settle(o Outcome) {
	if f.ready {
		return
	}
	f.outcome = o
	f.finish()
}

func (f *Future) finish() {
	f.ready, f.cancel = true, nil
	if f.scope != nil {
		f.scope.leave(f)
	}
	if f.then != nil {
		f.then(f.outcome)
	}
	f.waiters.Wake()
}

package coroutine

import "fmt"

// Kind says what an [Error] is about. Values are append-only.
type Kind int

const (
	// Panicked: user code has panicked.
	Panicked Kind = iota + 1
	// Exited: user code has called runtime.Goexit, as t.FailNow does.
	Exited
	// Foreign: a goroutine that is no coroutine has made an API call.
	Foreign
	// Watching: code that may only look has made another API call.
	Watching
	// Stuck: a coroutine waits for something that is none of the workflow's.
	Stuck
	// Slow: a coroutine runs for long.
	Slow
	// Left: a coroutine did not end when it was evicted.
	Left
)

// Error is what is wrong with the code of a workflow, and where.
type Error struct {
	Kind      Kind
	Coroutine string // its name; empty if it is Foreign
	// What is the API call if it is Foreign or Watching, and what the goroutine does, in the words
	// of package runtime, if it is Stuck, Slow or Left.
	What  string
	Value any // that of the panic; of Watching the code that may only look
	Stack Stack
}

// Panic is what is wrong with code that has panicked. It is called by a deferred function of that.
func Panic(name string, value any) *Error {
	return &Error{Kind: Panicked, Coroutine: name, Value: value, Stack: callers()}
}

// Error tells it in a line, with the position in the user's code.
func (e *Error) Error() string {
	at := ""
	if line := e.Stack.Line(); line != "" {
		at = " at " + line
	}
	switch e.Kind {
	case Panicked:
		return fmt.Sprintf("coroutine %s panicked%s: %v", e.Coroutine, at, e.Value)
	case Exited:
		return fmt.Sprintf("coroutine %s was ended%s by runtime.Goexit, which t.FailNow calls too: "+
			"let the workflow return an error", e.Coroutine, at)
	case Foreign:
		return fmt.Sprintf("%s was called%s by a goroutine that is no coroutine of the workflow, "+
			"such as one of go or iter.Pull: begin it with workflow.Go", e.What, at)
	case Watching:
		return fmt.Sprintf("%s was called%s in %s, which may only read", e.What, at, e.Value)
	case Stuck:
		return fmt.Sprintf("coroutine %s waits%s for something outside the workflow (%s): use "+
			"workflow.Go, workflow.Signals, workflow.Sleep or an activity instead of native "+
			"goroutines, channels, sleeps, locks and I/O", e.Coroutine, at, e.What)
	case Slow:
		return fmt.Sprintf("coroutine %s is slow%s (%s)", e.Coroutine, at, e.What)
	case Left:
		return fmt.Sprintf("coroutine %s did not end when it was evicted, and stays%s (%s)",
			e.Coroutine, at, e.What)
	}
	return fmt.Sprintf("coroutine %s: kind %d%s", e.Coroutine, e.Kind, at)
}

// Unwrap returns the error that was the value of a panic.
func (e *Error) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

package run

// Did says what a step did.
type Did string

// What steps do.
const (
	Began Did = "began"
	Ended Did = "ended"
	Threw Did = "failed" // a handler may still take the failure
	// Logged is a line of the log, in its place among the steps.
	Logged Did = "logged"
)

// Trace is told what the steps of a run do, while they do it: for those who look on. A decision
// that is made twice tells twice. The output is that of a step that has ended, and never changed.
// Of a line of the log the ref is empty, and the output is the action.
type Trace func(ref string, did Did, output any, f *Failure)

// Tell tells, if somebody looks on.
func (t Trace) Tell(ref string, did Did, output any, f *Failure) {
	if t != nil {
		t(ref, did, output, f)
	}
}

// Package checker tells whether a history obeys the rules that every history must obey: at every
// prefix, after any crash.
//
// It reads what was recorded and knows nothing of how it came about. Tests run it over every
// history they make, and verify and audit run it over the streams of a live system. A violation is
// a bug of Drover or a damaged store, never a fault of a workflow.
//
// [History] checks one run as a stream, event by event or record by record, and keeps only what is
// open in it: its memory does not grow with the run, except for the run ids of children, which must
// not come twice. [Workflow] checks the runs of one workflow id one after the other, and that a run
// which continues another takes over what it must. [Namespace] checks all of them, and that what
// workflows do to one another agrees on both sides. All are pure: no clock, no I/O; none is safe
// for concurrent use.
//
// Some rules need a boundary. Within one commit a waking event may stand a few events before the
// DeciderScheduled that it causes, so that rule is checked where a record ends, at a
// DeciderStarted, and at the end of the history. Whoever checks plain events must therefore end at
// the end of a record, or take a [RuleWake] of [History.End] for what it is.
//
// An event of an unknown type is counted and otherwise believed: it may be a decision or a reason
// to ask the decider.
//
// It imports schemas and the standard library and nothing else, so that it can share no mistake
// with the core it checks.
package checker

// Package machine runs the code of one workflow run against its history.
//
// A [Machine] delivers the events of a run one by one, and after each it lets the coroutines of the
// code run until all of them wait. What the code asks for becomes the decision of the turn. A
// decision that the history has already is replayed: the same events are delivered in the same
// order, and what the code asks for is compared with what the history has (package match).
//
// Invariants:
//
//   - What the code does depends on the order of the events alone, never on how they fell into
//     decisions. The clock of the code is the time of the event that is being delivered.
//   - Everything that the code asks for has a name: that of its contract and a number, in a
//     coroutine with the path of that before it. A new step in one branch shifts no other.
//   - A machine that has returned an error is of no use any more: it is thrown away, and the run is
//     rebuilt from its history.
//   - Nothing runs after the main function has returned.
//
// The package knows nothing of NATS, workers or types of Go; package workflow gives it code and
// turns payloads into values. All calls come from one goroutine at a time, or from the coroutine
// that runs.
package machine

// Package runs is the read side of the engine: what the histories tell of runs. It folds records to
// the state of a run, reads pages of events and results, and lists and counts runs.
//
// Everything goes through a [Reader]. Any goroutine may call it. Its functions block while they
// read, so a loop calls them on another goroutine.
//
// Invariants:
//
//   - Nothing here writes to a stream.
//   - A follower of a stream may lag after its leader. What is decided by the end of a history,
//     such as whether a run exists, is asked of the leader (P-2).
//   - Requests that read much are bounded. [Scans] bounds how many are served at a time. A list
//     stops after [listFor] and a count after [maxCount]; each answer then says that there is more.
package runs

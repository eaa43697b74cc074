// Package retention purges the histories of runs that have closed and that nobody wants to keep.
// Its [Janitor] is a task of the master of a namespace; how long a run is kept is said by package
// internal/retention, and this package finds the runs, groups them, and knows when it may (P-14).
//
// The janitor reads the headers of all history records once, in their order, and from then on what
// has come since, but for what brokers in its process tell it ([Janitor.Changed]). It keeps 24
// bytes for each closed run, in the group with which the run is judged: those of its hash, or of
// its workflow type.
//
// Invariants:
//
//   - A run goes only if its last record says that it is closed. Nothing follows that record, so
//     nothing that was found out about a closed run is ever outdated.
//   - It goes only when it has been closed for [Options.Grace], so that a start which is repeated
//     for want of an answer still finds it; when the checkpoint of its partition lies after all
//     that its last record has consumed, its effects, and at least one record of another run, which
//     is the witness of the history's end; when no message for its workflow id is left in either
//     log; and when all runs above it are closed, and have nothing to repeat either.
//   - A run goes whole: its subject is purged in one request, or a part of the stream in which
//     every run lies whole.
//   - The runs before the last one of a chain, and the parts of a flow's run, go before it, so that
//     what is left after a crash is found again.
//   - A large payload goes only if nothing names it: two looks, an hour apart at the least, have
//     read whatever may name one and have not found it. No history goes during a look.
//   - Nothing but histories and payloads is purged here. The logs are their owners'.
package retention

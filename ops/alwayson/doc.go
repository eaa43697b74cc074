// Package alwayson keeps workflows running: of each always-on workflow there is one run, and when
// it ends the next one begins.
//
// A [Monitor] is a task of the master. It holds a question about the end of each run, which follows
// continuations, and answers the verbs about always-on workflows. What it knows stands in a record
// in the bucket of schedules, which is read and written by compare-and-set.
//
// The parts: record.go and backoff.go are pure and say what a record becomes; check.go judges what
// is added; store.go reads and writes; keeper.go does what is next for one workflow; start.go and
// follow.go begin its runs and learn how they end; verbs.go answers.
//
// Invariants:
//
//   - The record of a run is written before its start is sent. Run ids are made of namespace, id,
//     incarnation and number, so that a start which is repeated, by whomever, is a repeat (S2-3).
//   - A start that comes later than a minute after its record is refused by the owner of the
//     partition. Closed runs stay for longer than that, so no start begins a run that has been
//     purged.
//   - A second master does no harm: what it writes names a sequence that has passed, is refused,
//     and it reads again.
//   - A run of the id that somebody else has started is the run: it is followed, and nothing is
//     begun beside it.
package alwayson

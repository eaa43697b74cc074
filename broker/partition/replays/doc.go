// Package replays is how an owner answers who wants a run repeated that has ended: a replay is a new
// run of the same workflow id (ADR 0028).
//
//   - Where it begins, and with which input, its decider tells, before anything is written: so what
//     cannot be replayed is refused, and the outcome of the id stays what it is.
//   - The run id follows from the request id, as that of a start: a repeat finds the run (P-5).
//   - The old history is closed and never changes. The new run's first event and the headers of its
//     records name the old one, so both ends of the link are found by looking at the runs of the
//     id.
//
// [Replays.Answer] is called on the loop of the partition. The old run is read and the decider is
// asked off the loop; then the new run begins as any other, with a start at the partition, which is
// the [Host].
package replays

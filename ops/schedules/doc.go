// Package schedules starts workflows, and signals them, at the times of schedules (S2-10). One
// [Scheduler] fires the schedules of a namespace, as a task of its master, and answers the verbs
// about them.
//
// A schedule is a key of the bucket of schedules, schedule.<id>, and what it has done is another,
// schedule.<id>.state. The state is written by compare-and-set, so of two masters one loses.
//
// Invariants:
//
//   - A slot is written into the state as starting before its run is started. The id of the run is
//     computed from the namespace, the schedule, its incarnation and the slot, so that a repeat of
//     the start, after a crash or by another master, begins no second run. A slot leaves the state
//     as settled, with an outcome and, where it was not done, a reason.
//   - A start is refused when it comes later than a minute after that write. So a master that stood
//     still cannot begin a run anew that has closed and is purged, which takes at least two
//     minutes. Who needs longer writes the state again before.
//   - Nothing is purged by a new master before it has settled what an earlier one was starting: see
//     [Scheduler.Settled].
//   - Nothing is fired early by the clock of the NATS server (ADR 0056).
//
// Schedules with a window are kept, shown and paused here. Who fires them reads the bucket itself.
package schedules

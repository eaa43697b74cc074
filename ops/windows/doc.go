// Package windows does what is to be done once a period: it answers whether a caller is the first
// of a period, and it starts the runs of schedules that have a window. Every node with the role ops
// runs it, so that one that lives is enough.
//
// A period is a key of the bucket of schedules. Who creates the key has the period, and nobody else
// gets it:
//
//	period.<name>.<period>                      of the verb once and of the activity drover.once
//	period.<schedule>.<incarnation>.<period>    of a schedule with a window
//
// Names are escaped as package bucketkey does it. A key lives three periods, and at least eight
// days.
//
// # How a window is fired
//
// At each trigger of a window every node tries to create the key. Who does has written the workflow
// id and the run id of the start into it, which are computed from schedule and period. It then
// starts the run, and marks the key as started. A key that is not marked after ten seconds is the
// work of a node that has died, or of an owner who did not answer: any node starts again, with the
// same run id, and marks it. After the end of a window nothing begins that has no key. A window
// that has none by then was missed: who creates its key counts it.
//
// Invariants:
//
//   - A window starts at most one run. A repeated start has the run id of the first one, and
//     [Windows.Holds] keeps runs from being purged as long as one may be repeated.
//   - A window starts one run if a node lived at any of its triggers, unless the schedule is
//     paused, used up, or its start is refused for good, which is counted.
//   - Nothing is done before its time by the clock of the NATS server (ADR 0056).
//   - The same caller gets the same answer: an effect that is repeated after a crash learns what it
//     would have learnt before.
package windows

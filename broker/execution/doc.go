// Package execution is the pure core of Drover: one run of one workflow as a function
//
//	(state, message, now) → (events, effects)
//
// It has no I/O, no clock, no dice, no goroutine and no logger, so that it can be tested by
// properties, fuzzed and simulated. Only the partition engine in package broker calls it, from one
// goroutine per partition.
//
// Invariants:
//
//   - A [State] is a fold over events and nothing else: [State.Apply] is the only function that
//     changes what a history can show. [State.Step] decides which events follow from a message, and
//     applies them.
//   - Whatever order messages come in, the events obey the rules of package checker.
//   - A message that cannot be applied changes nothing and yields a [Dead] effect with the reason.
//   - Due times count from the server's time of the record that set them (P-15). Until that is
//     known, an item's base is the time of its event; [State.Rebase] corrects it.
//
// Not kept in the state, since a new owner must do without: who was asked, which alarm is armed,
// when a heartbeat came. The last is a field of an open [Activity], but no event sets it.
package execution

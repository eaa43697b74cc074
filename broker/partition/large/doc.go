// Package large deals with payloads that are too large for a message, of what comes to the owner of
// a partition: it moves them to the object store and leaves references in their place, or refuses
// what cannot be moved.
//
//   - A message of a log: [Large.LookUp] looks for what its references name, then [Large.Spill]
//     stores what it has whole, under names that follow from its place in the log ([SpillNames]).
//   - A start that came straight to the owner: [Large.OfStart] tells what has to be stored before it
//     begins anything, [Large.StoreStart] stores it, [Large.DropStart] removes it after a refusal.
//   - A decider's reply: [Large.JudgeReply] applies it, stores what does not fit, or refuses it.
//
// Invariants:
//
//   - What a reference names is in the store before the reference gets into a history: deciders fail
//     on any other for good.
//   - What fits no record is refused while its sender can still be told. No record that is too large
//     is ever written, since nothing goes on without it.
//
// LookUp and Spill run on the goroutine that reads the log, which waits for them. Everything else
// runs on the loop of the partition, which made the [Large] and is its [Host].
package large

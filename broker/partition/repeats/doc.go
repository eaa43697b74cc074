// Package repeats knows which requests and starts the owner of a partition has had before, and reads
// back from the history what has left the memory.
//
// [Repeats.Take] judges each message that has a request id, before its run does, and
// [Repeats.HadBefore] a request for a run that has closed. Both ask the state of the run first,
// which has the latest ids. Then they ask the index of the chain, which is made of the history when
// it is needed. [Repeats.Unused] tells which workflow ids have no run yet, so that their first
// starts are answered without a look into the history.
//
// Invariants:
//   - An id that the index of a chain does not find was not recorded since the index was cut (P-6).
//   - No request is taken for another one: what a hash finds is read in its record.
//   - While an id is looked for, its run takes nothing, so messages keep their order (P-4).
//   - That a workflow id is unused is no proof: the server refuses the first record of its run if
//     the history has another one (P-2).
//
// Everything runs on the loop of the partition, which made the [Repeats] and is its [Host]. Only
// reads run elsewhere.
package repeats

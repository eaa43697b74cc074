// Package handover is how a partition passes from one owner to the next: the fence that makes this
// one the only writer ([Handover.TakeOver]), the checkpoint that says how far the former one has
// come, what a server has lost of it since, and the repetition of effects that the former owner may
// have left undone ([Handover.BacklogRead]). For the next owner it writes the checkpoint
// ([Handover.Write]).
//
// Invariants:
//
//   - Nothing is read of the partition before the fence is written: no record of a former owner
//     can follow it (P-2, P-16).
//   - The checkpoint never says more than what is committed and whose effects are stored (P-1), and
//     it names the highest record, so that a history that lost its end is noticed (P-9).
//   - Effects are repeated only when the backlog of both logs was read, and the effects position
//     stays until the repeats are acknowledged.
//
// TakeOver runs before the loop of the partition; everything else runs on it.
package handover

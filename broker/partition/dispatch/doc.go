// Package dispatch gives out the tasks of a partition's activities ([Dispatch.Task]), and publishes
// what the records of a partition cause outside the history ([Dispatch.Send]).
//
// A task is offered to the idle workers of its list if it will be over soon (offer.go), or stored
// on its list, which is made if it is not there (list.go). The partition, which performs the
// effects of its records, calls it on its loop, and is its [Host].
//
// Invariants:
//
//   - What an effect waits for is held until it is done: a task until it is stored, or until the
//     outcome of its offer is in the history (P-1).
//   - What is not acknowledged is published again until it is, or the owner goes.
//   - An owner that leaves puts what it has offered on the lists ([Dispatch.StoreOffers]).
package dispatch

// Package exchange is the messages between workflows: starts of children and what becomes of them,
// signals and cancels of other workflows, and the answers to all of these. A message goes into the
// inbox of the workflow that is meant, whoever owns it ([Exchange.Tell]); it names the event that has
// caused it, so one that is sent again does nothing twice (P-5).
//
// Everything runs on the loop of the partition, which made the [Exchange] and is its [Host].
package exchange

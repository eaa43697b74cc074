// Package decisions asks deciders: which run is asked and when ([Decisions.Consult]), whom the task
// goes to, whether a record waits for the answer ([Decisions.DeferRecord]), what an answer means
// ([Decisions.Replied], [Decisions.Conclude]), and which decisions an owner takes from the one
// before and hands to the next ([Decisions.Inherit], [Decisions.Handed]). What is known of workers
// and of runs that nobody listens for is package deciders.
//
// Invariants:
//
//   - What a decider sees is in the history, or waits to be written with its decision.
//   - A run has one decision task at a time, and its mailbox waits until it is known that somebody
//     has it.
//   - An answer is judged by the token of its task; one that nobody waits for is a dead letter.
//
// Everything runs on the loop of the partition, which made the [Decisions] and is its [Host].
package decisions

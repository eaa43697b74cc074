// Package ahead offers the task of an activity to the worker that decides after it: the worker may
// answer with the outcome and with its decision upon it, and both become one record (ADR 0031). An
// offer that is refused goes the way of all tasks.
//
// Everything runs on the loop of the partition, which made the [Ahead] and is its [Host].
package ahead

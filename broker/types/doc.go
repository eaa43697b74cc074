// Package types keeps the registered workflow and activity types of a namespace: what a broker
// knows of their bucket, and the changes that the API makes.
//
// Invariants:
//
//   - The bucket decides. A change is a compare-and-set at its leader, such that a repeat of it
//     finds nothing to do.
//   - A table has all of the bucket before its broker serves, and what the broker itself wrote or
//     read at once.
//   - A published table never follows a newer one.
//
// Any goroutine may call a [Table]. Calls that change or read a type block.
package types

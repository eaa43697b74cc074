// Package bucket keeps a table in memory that follows a bucket of keys: a broker has one of the
// registered types and one of the locks.
//
// Invariants:
//
//   - Before a broker serves, its table has all that the bucket's leader had at that time. A
//     follower's word does not count: it may lag.
//   - The bucket decides; the table only answers fast. Whoever changes a key does so by
//     compare-and-set at the leader.
//
// Its watches run on a goroutine of the caller.
package bucket

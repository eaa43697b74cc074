// Package stats counts what the owners of a namespace's partitions do in this process. Brokers and
// timer workers are given a [Stats] by whoever starts them, and add to it; package ops/metrics
// reads it. It knows no monitoring system, and outlives the roles that count.
//
// Runs, decisions, activities and locks are counted from their events, when these are made: each
// partition's owner makes each event once. An owner whose record is refused makes way for another,
// which makes the events of that record anew; then these count twice.
//
// A nil [Stats] counts nothing. Everything may be used by any goroutine.
package stats

// Package probes finds out that a worker is gone before the deadline of what it has (ADR 0036), and
// has others asked for that.
//
// Everything runs on the loop of the partition, which made the [Probes] and is its [Host].
package probes

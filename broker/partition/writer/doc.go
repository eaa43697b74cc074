// Package writer writes the records of a partition's runs into the history, one at a time for each
// run and many at a time for the partition.
//
// A record goes out with the sequence that the owner predicts for it and with that of the run's
// record before it, so that a write of anybody else refuses it (P-2). Events are facts once the
// record is acknowledged; then the [Host] performs what they have caused. A refusal, or an
// acknowledgement with another sequence, ends the term.
//
// The package also knows how full the history is, and tells Options.Changed which runs have changed.
// Everything is called on the loop of the partition, which makes the [Writer] and is its [Host].
package writer

// Package metrics shows what a server does to Prometheus. A [Set] is a collector: what it shows
// stands in one table (table.go), and is read, for each scrape, off the counters that the roles of
// this process keep (package broker/stats). What would cost a request for each scrape, such as how
// long the task lists are, is asked for by the master of a namespace each 15 seconds (gauges.go).
//
// A server makes a Set and a [Namespace] of it for each that it serves; [Listen] answers Prometheus,
// in the text form without the help of its own package, which takes ten milliseconds for 200 types
// (text.go).
//
// Invariants:
//   - A label is never an id. Those that users name, such as types and lists, have at most
//     [tally.Limit] values in a namespace; what is beyond them counts as "other", and in
//     drover_metric_overflow_total.
//   - A scrape waits for nobody but the mutexes of counters.
package metrics

// Package bulk does one thing to all runs that a query finds: it cancels, terminates, signals,
// pauses, resumes, replays or deletes them.
//
// A job is a run of the built-in type drover.bulk, so it survives crashes, can be looked at,
// paused and canceled as any other. Each node with the role ops answers the verb bulk, and works on
// jobs while there are any: it decides their runs ([Decide]), and carries out their activities.
// The first one asks the query, once, and writes what it has found into large payloads: what starts
// later is not acted on. Each of the others acts on up to 500 runs.
//
// Invariants:
//
//   - What is done, and to which runs, stands in the record of the job, which the verb bulk has
//     written. A run of the type that was started otherwise does nothing: who may start workflows
//     may not therefore end those of others.
//   - The n-th run of a job is acted on with the request id bulk-<ULID>-<n>. The owners of runs
//     know a repeat by it, so an attempt that was cut off is repeated without harm.
//   - An act that gets no answer is made again until it does. It is neither done nor refused
//     before.
//   - The truth is with the owners of runs: the index only names them.
package bulk

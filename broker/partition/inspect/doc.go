// Package inspect is how an owner tells of the runs of its partition: what they are and what they
// wait for ([Inspector.Execution] answers describe, result and why), pages of their histories
// ([Inspector.History]), and what an audit compares with the streams ([Inspector.Audit]). It changes
// no run.
//
//   - What describe and why tell of a run in memory is in its history first: the answer waits for
//     the commit. An audit tells at once what a run waits for.
//   - A run that is not the latest of its id is read from its history, or from what is remembered of
//     it once it is purged.
//   - The words are package explain's, which is pure.
//
// The partition, which is the [Host], calls it on its loop; histories are read off the loop.
package inspect

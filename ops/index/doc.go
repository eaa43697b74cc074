// Package index holds what is known of the runs of a partition in columns, and answers queries.
//
// The index is never the truth. It may lag, it may have forgotten rows, and it may be wrong; what
// is done to a run is decided by the owner of its partition. All that is in it can be made anew
// from the stream, so a snapshot with anything odd in it is thrown away.
//
// What holds:
//
//   - A run is known by its workflow id and its run id, and has one row. A row with an older
//     sequence than the one that is there changes nothing, so records may be told twice.
//   - A [Store] has one writer at a time and any number of readers. A query locks one block of
//     8,192 rows at a time: each row is as it was at some instant of the query, and none is seen
//     twice. A writer waits for one block at most.
//   - A query means what query.Query.Matches says, row by row.
//   - A row never moves within a block, and a block that is no longer used never changes. So a
//     query that has begun reads on in the old one.
//   - Values of texts are numbers of values that only their block has. They go with it: nothing
//     grows but with the rows.
package index

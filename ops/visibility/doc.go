// Package visibility keeps the index of a namespace on a node: a row for each of its runs, by which
// the verbs query and groups answer in milliseconds. Any node of the namespace that runs the role
// ops may answer.
//
// The index hears what owners in this process tell of their records (ADR 0043), and reads the
// headers of all others. What it cannot keep up with it drops, and reads later: nobody waits for it.
//
// Invariants:
//
//   - The index is never the truth. What is done to a run is decided by its owner.
//   - A row is made of the last record that was heard of or read of its run, and nothing else.
//   - A partition's position says up to which record the rows of its runs count, and it never says
//     more. The lag of an answer is the end of the streams, asked after the rows were read, less
//     the positions, noted before that: it is never less than the true one.
//   - A stream that has lost its end, or was made anew, is read anew, with nothing kept. So is one
//     with a row that is not as the last record of its run: an hourly audit looks for them.
//   - A snapshot has the rows at its position, and no newer ones. With anything odd in it, or about
//     the stream that it is of, it is not used.
//   - A run that was purged has no row, soon after its janitor has told, and at the latest when the
//     rows are compared with the subjects of the stream.
package visibility

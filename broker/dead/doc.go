// Package dead writes dead letters: messages that could not be applied, with the reason, so that
// nothing is ever dropped in silence.
//
// Every role may write one. A broker lists and counts them by a [Reader]; package signals and the
// command line ask it.
//
// Invariants:
//
//   - A letter is written once. Its subject ends in a [Place] that names the message it is about,
//     and it is published with the expected last sequence 0 of that subject. So a retry after a
//     lost acknowledgement, and a second role that meets the same message, find the letter there
//     and count it as written (P-12).
//   - Sequence numbers alone do not name a message: a stream that lost an unsynced tail hands them
//     out again. A place therefore holds an incarnation too. A role that has no right to know a
//     stream's incarnation uses [Digest] of the message instead, which tells two messages of one
//     number apart just as well.
//   - A letter always fits. One that would outgrow the server's limit loses the end of its body
//     first, and says so.
package dead

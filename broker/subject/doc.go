// Package subject is the only place where the text of subjects, streams and buckets is built or
// parsed.
//
// Invariants:
//
//   - An id becomes exactly one subject token, and a token gives back exactly one id. So no id can
//     add a token, a wildcard or white space to a subject, and two ids never meet on one subject.
//   - The partition of a workflow id is the one that the server's own {{partition(P,n)}} transform
//     computes, so the signals stream and the brokers agree without talking to each other.
//   - Parsers accept only what the builders write. A stranger may publish to the signals stream, so
//     a parser refuses an id that [ValidateID] refuses.
//
// The builders trust their arguments: callers check ids with [ValidateID], lists with
// [ValidateName] and namespaces with [ValidateNamespace] where they enter the system. Every package
// may import this one; it imports only the standard library.
package subject

// Package schemas is the vocabulary of Drover: the events of a history, the decisions of a decider,
// the tasks, reports and requests on the wire, and the two encodings they travel in.
//
// It is the ground floor: it knows no transport, no clock and no logger, and everything else speaks
// in its words. How they are encoded is known to package codec below it, which gets the words in
// tables.
//
// Invariants:
//
//   - A name, once on the wire, keeps its meaning for ever. Enumerations only grow.
//   - Every message has a version. An unknown version is an error ([ErrVersion]), an unknown field
//     is ignored.
//   - A record is kept for ever: it has a compact form, and every form that records ever had stays
//     readable.
//   - JSON is accepted wherever msgpack is; the first byte tells which one a body is.
//
// Durations are seconds in JSON (a number, or a text such as "1m30s"), nanoseconds in msgpack.
// Times are RFC 3339 in JSON, Unix nanoseconds in msgpack. Payloads (input, result, details) are
// any bytes; see [Payload] for their JSON form.
package schemas

// Package payloads keeps what is too large for messages: payloads above schemas.PayloadThreshold,
// in the object store of their namespace. [Store] and [Uploads] are for brokers, who alone have
// rights to it; [Client] is for everybody else, and goes through the API of the brokers.
//
// Invariants:
//   - A reference exists only when all of its bytes are stored and their digest was checked. What
//     is cut short leaves chunks that nothing refers to, and they are removed.
//   - An object never changes. The first writer of a name wins; a later one with the same name gets
//     the first one's reference, and removes its own chunks.
//   - Chunks are written under an id of their own for each try, so two writers never mix.
//   - Whoever reads checks the digest of the whole.
//
// The layout is that of every NATS client, so "nats object ls" and "nats object get" work on the
// store. The client library's own object store is not used: it publishes behind the caller's back,
// reads by consumers, and lets the last writer of a name win.
package payloads

// Package faultproxy is a TCP proxy that fails on demand. It stands between a NATS client and its
// server, or between two servers of a cluster, and does what networks do: it cuts, goes silent in
// one direction, holds bytes back, is slow. It knows enough of the NATS protocol to lose the answer
// of a single publish, to send a message twice, and to let a message be overtaken, while the stream
// of bytes stays valid.
//
// Only tests use it. It listens on loopback. It knows no TLS: bytes that are not the NATS protocol
// pass as they are, and so do those between servers; the faults of single messages do nothing to
// them.
//
// Invariants:
//   - Without a fault the bytes of each direction arrive unchanged and in order.
//   - A frame (a protocol line, with its payload if it has one) is passed whole or not at all,
//     except by Cut and HalfOpen.
//   - A connection that has lost bytes is never used again: Heal closes it, as its stream has a
//     hole.
//   - Every method may be called at any time, by several goroutines. A fault holds for connections
//     that there are and for those that come, until Heal or until it is set anew.
package faultproxy

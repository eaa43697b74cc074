// Package natsconn is the only way in which the other packages speak NATS: connection, core
// messages, JetStream publishing, reading, pulling work and raw key-value operations.
//
// It exists because the defaults of the client library are not safe enough for one-writer logs:
//
//   - Nothing is published behind the caller's back. While the connection is down a publish fails
//     with [ErrDisconnected] and nothing was sent; the library's reconnect buffer is off, because
//     it would send the writes of a holder whose lease has run out in the meantime.
//   - A write is never repeated here. Its outcome is an acknowledgement, a refusal, or
//     [ErrTimeout], which means unknown. Only reads and idempotent stream operations are asked
//     again after a lost answer.
//   - One table ([APIError]) maps the server's codes to sentinel errors. A refused compare-and-set
//     has two: with [ErrWrongSequence] reload, with [ErrInFlight] try again in a few milliseconds.
//   - To a publisher without permission the server does not answer; it says so beside the answers,
//     of no message in particular. [Conn] finds out whom it means, and the call fails at once with
//     a [*RefusedError] instead of after its time.
//
// Reads by [Conn.LastBySubject], [Conn.GetSeq] and [Conn.KVGet] ask the stream's leader.
// [Conn.BatchGet] may be answered by any replica, so it can lag the caller's own acknowledged
// writes. It also occupies the server's side of the connection while it runs: read histories on a
// [Conn] of their own.
//
// Virtual time: nats.go keeps one pool of timers for the whole process, and a timer made in one
// synctest bubble is fatal in the next. This package avoids the calls that use it (Flush, NextMsg,
// Request with a duration, Drain on in-process connections). nats.go itself uses it when it
// reconnects, so tests run their bubbles by package internal/virtual, which empties the pool.
package natsconn

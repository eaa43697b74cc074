// Package run is the state of a run of a flow, as plain data: how far its steps have come, what
// they have brought, what it waits for and how it has failed. It says nothing of what comes next;
// package machine does.
//
//	data, err := run.Encode(state)                 all of it, as JSON
//	state, err := run.Decode(data)
//	data, fresh, err := run.EncodeLean(state)      without what the history has already
//	state, err := run.DecodeLean(data, values)
//
// Invariants:
//
//   - A value in a state is never changed in place. One that several places share is written once,
//     and is shared again when it is read.
//   - What is written is read by every later release: fields are never renamed, and a format that
//     earlier releases do not read has a number of its own.
//   - A state that is read may come from anybody. Decode bounds its bytes and refuses references,
//     ranges and loops that fit nothing. Whether it fits a definition is judged by package machine.
//
// It is pure. Package machine changes states; package flow keeps them and reads them.
package run

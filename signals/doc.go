// Package signals is the front door for news from outside: publishing signals, and reading what
// could not be delivered.
//
// Anyone may use it, and anyone with a NATS client may do without: a signal is one JetStream
// message on drover.<namespace>.signal.<workflow id>.<name>, whose body is the signal's input as it
// stands. Nothing of Drover has to be up when it is published. The server puts the partition first,
// and the owner of the workflow reads it from there.
//
// # What is promised
//
//   - A signal that [Publish] or [PublishOnce] returned without error is stored, and will be in
//     exactly one place: once in the history of the run that was open when its turn came, or in the
//     dead letters (P-12).
//   - [PublishOnce] with the same request id applies a signal once, however often it is called; the
//     workflow remembers the id. [Publish] applies each call.
//   - Dead letters say why, where the message stood, and hold its body. They are written once, by
//     [Bury].
package signals

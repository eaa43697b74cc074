package partition

import (
	"bytes"
)

// Whoever asks may name any subject for the answer, and who answers publishes there by his own
// right: NATS does not check reply subjects. So that nobody has brokers, other servers, or
// JetStream, write where he has no right himself:
//
//   - Nobody answers to a subject of Drover or of the server: brokers, the master, the service for
//     namespaces, workers (subject.Answerable).
//   - What the server gives out, or says itself, is refused where requests are heard
//     (natsconn.Given), and in the inbox and the signals.
//   - Messages of an inbox name their subject, which no answer does (natsconn.HeaderSubject); only
//     activity workers, who have the right to publish theirs, need not.
//   - What lies on the subject of a run and is no record is passed over (runs.IsRecord).
//   - An acknowledgement of JetStream is no signal (isAnswer).
//
// What is left: a signal with the text of some other answer, by somebody who may ask for it, and
// the trouble that a foreign message in a history makes, whose owner takes over anew. Users that
// are not trusted belong into an account of their own.

var acknowledgement = []byte(`{"stream":"drover-`)

// isAnswer tells whether the body of a signal is an acknowledgement of JetStream, of a stream of
// Drover.
func isAnswer(body []byte) bool {
	return bytes.HasPrefix(body, acknowledgement) && bytes.Contains(body, []byte(`"seq":`)) &&
		len(body) < 512
}

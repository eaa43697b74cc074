package natsconn

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// Header is the headers of a message. Keys keep their case.
type Header = nats.Header

// Headers that the server acts upon or adds.
const (
	headerExpectLastSeq        = "Nats-Expected-Last-Sequence"
	headerExpectLastSubjectSeq = "Nats-Expected-Last-Subject-Sequence"
	headerExpectSubject        = "Nats-Expected-Last-Subject-Sequence-Subject"
	headerTTL                  = "Nats-TTL"
	headerMarkerReason         = "Nats-Marker-Reason"
	headerKVOperation          = "KV-Operation"
	headerSubject              = "Nats-Subject"
	headerSequence             = "Nats-Sequence"
	headerTimeStamp            = "Nats-Time-Stamp"
	headerNumPending           = "Nats-Num-Pending"
	headerLastSequence         = "Nats-Last-Sequence"
	headerLastConsumer         = "Nats-Last-Consumer"
	headerConsumerStalled      = "Nats-Consumer-Stalled"
)

// HeaderSubject names the subject that a message is meant for. The messages that brokers and timer
// workers put into inboxes bear it. Whatever reaches an inbox without it, or with another subject,
// was not meant for it: whoever asks a question may name any subject for the answer, and the one
// who answers publishes there by his own right.
const HeaderSubject = "Drover-Subject"

// Addressed returns headers that name a subject.
func Addressed(subject string) Header { return Header{HeaderSubject: {subject}} }

// ExpectLastSeq lets a write pass only if the stream's last sequence is n. It may be pipelined with
// predicted sequences, on replicated streams too.
//
// Alone it does not fence a pipeline. One foreign message refuses one message and takes its
// sequence, so the prediction of the message after it is right again, and that one is stored. A
// writer that has several messages in flight must therefore also tie each to its predecessor, by
// ExpectLastSubjectSeq, or accept that messages of other subjects pass.
func ExpectLastSeq(h Header, n uint64) {
	h[headerExpectLastSeq] = []string{strconv.FormatUint(n, 10)}
}

// ExpectLastSubjectSeq lets a write pass only if the last sequence on its own literal subject is n;
// 0 = none yet. On replicated streams only one such write per subject can be in flight.
func ExpectLastSubjectSeq(h Header, n uint64) {
	h[headerExpectLastSubjectSeq] = []string{strconv.FormatUint(n, 10)}
}

// ExpectedLastSubjectSeq reads what [ExpectLastSubjectSeq] has said of a message that was stored:
// where the one before it on its subject stands. It is 0 for the first, and if nothing was said.
func ExpectedLastSubjectSeq(h Header) uint64 {
	n, err := strconv.ParseUint(h.Get(headerExpectLastSubjectSeq), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// ExpectNone lets a write pass only if the stream has no message on any subject that filter matches
// (wildcards allowed), its own among them. On replicated streams the server does not see such
// messages while they are in flight.
func ExpectNone(h Header, filter string) {
	h[headerExpectLastSubjectSeq] = []string{"0"}
	h[headerExpectSubject] = []string{filter}
}

// expireAfter lets the message expire after d, on streams that allow it. The server counts whole
// seconds and would cut a fraction off, so d is rounded up: a lease must not end before its holder
// thinks so. A d of 0 or less sets nothing.
func expireAfter(h Header, d time.Duration) {
	if d <= 0 {
		return
	}
	seconds := (d + time.Second - 1) / time.Second
	h[headerTTL] = []string{strconv.FormatInt(int64(seconds), 10) + "s"}
}

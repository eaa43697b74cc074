package natsconn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Ack is the outcome of one JetStream publish. With Err nil the message is stored at Seq.
//
// Err is one of: [*SequenceError] (wraps [ErrWrongSequence]), [ErrInFlight], [ErrNoStream],
// [ErrTooLarge], [*APIError] for other refusals: nothing was stored. [ErrDisconnected]: nothing was
// sent. [*RefusedError]: the server does not let this user publish, nothing was stored.
// [ErrTimeout] and [ErrClosed]: the outcome is unknown, also that of a timeout joined to a refused
// subscription, that of the acknowledgements.
type Ack struct {
	Seq       uint64
	Duplicate bool // the server had seen the message id before; Seq is that of the first
	Err       error
}

// PublishSync publishes one message to JetStream and waits for the outcome; errors as in [Ack]. It
// waits for the connection first and sends once. Without a deadline in ctx, Options.RequestTimeout
// holds.
func (c *Conn) PublishSync(
	ctx context.Context, subject string, h Header, body []byte,
) (seq uint64, err error) {
	m, err := c.publish(ctx, 0, &nats.Msg{Subject: subject, Header: h, Data: body}, nil)
	if err != nil {
		return 0, fmt.Errorf("publish %w", OutcomeUnknown(err))
	}
	ack := parseAck(m)
	if ack.Err != nil {
		return 0, fmt.Errorf("publish %s: %w", subject, ack.Err)
	}
	return ack.Seq, nil
}

// publish sends m when the connection is up and waits for the answer; with every, it sends m again
// after each such time. The library's own request would wait for its whole time when the connection
// breaks and takes the acknowledgement with it, or when the server refuses the subject. Answers
// that are not wanted are passed over; nil wants any.
func (c *Conn) publish(
	ctx context.Context, every time.Duration, m *nats.Msg, wanted func(*nats.Msg) bool,
) (*nats.Msg, error) {
	answer := make(chan *nats.Msg, 1)
	reply, forget := c.inbox.expect(func(m *nats.Msg) {
		if wanted != nil && !wanted(m) {
			return
		}
		select {
		case answer <- m:
		default:
		}
	})
	defer forget()
	m.Reply = reply
	return c.exchange(ctx, every, m, answer)
}

// exchange is publish for a message whose answers somebody puts into a channel of one place.
func (c *Conn) exchange(
	ctx context.Context, every time.Duration, m *nats.Msg, answer <-chan *nats.Msg,
) (*nats.Msg, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	start := time.Now()
	defer c.denied.wait()()
	if err := c.refused(m.Subject, m.Reply, start, false); err != nil {
		return nil, err
	}
	var up, refused <-chan struct{}
	if err := c.whenUp(ctx, func() error {
		up, refused = c.reconnected(), c.denied.next()
		return c.write(m)
	}); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Subject, fromNATS(err))
	}
	var again, grace <-chan time.Time
	if every > 0 {
		t := time.NewTicker(every)
		defer t.Stop()
		again = t.C
	}
	for {
		select {
		case got := <-answer:
			return got, nil
		case <-again:
			// without a connection it is not sent; the first one may be answered all the same
			_ = c.write(m)
		case <-up:
			up, grace = nil, time.After(reconnectGrace)
		case <-refused:
			refused = c.denied.next()
			if err := c.refused(m.Subject, m.Reply, start, true); err != nil {
				return nil, err
			}
		case <-grace:
			return nil, c.unanswered(m.Subject, m.Reply, start, errBroken)
		case <-ctx.Done():
			return nil, c.unanswered(m.Subject, m.Reply, start, ctx.Err())
		case <-c.done:
			return nil, fmt.Errorf("%s: connection: %w", m.Subject, ErrClosed)
		}
	}
}

var errBroken = errors.New("the connection broke meanwhile")

var errNobodyStores = fmt.Errorf(
	"%w takes this subject: create the namespace, or wait until a leader is elected", ErrNoStream)

var (
	ackHead = []byte(`{"stream":"`)
	ackSeq  = []byte(`"seq":`)
)

// parseAck reads a publish acknowledgement. The server's usual form {"stream":"S","seq":12} is read
// without encoding/json; stream names cannot hold quotes.
func parseAck(m *nats.Msg) Ack {
	if noResponders(m.Header, m.Data) {
		return Ack{Err: errNobodyStores}
	}
	if seq, ok := fastAck(m.Data); ok {
		return Ack{Seq: seq}
	}
	if a, ok := parseErased(m.Data); ok {
		return a
	}
	var full struct {
		answer
		Stream    string `json:"stream"`
		Seq       uint64 `json:"seq"`
		Duplicate bool   `json:"duplicate"`
	}
	if err := json.Unmarshal(m.Data, &full); err != nil {
		return Ack{
			Err: OutcomeUnknown(fmt.Errorf("%w: unreadable acknowledgement: %w", ErrTimeout, err)),
		}
	}
	if fail := full.failure(); fail != nil {
		return Ack{Err: fail.asError()}
	}
	if full.Stream == "" || full.Seq == 0 {
		return Ack{Err: OutcomeUnknown(
			fmt.Errorf("%w: the answer is no acknowledgement, somebody else listens on the subject",
				ErrTimeout))}
	}
	return Ack{Seq: full.Seq, Duplicate: full.Duplicate}
}

// storedBy reads an acknowledgement, or the refusal of a stream, among answers of any kind. No
// answer of Drover has a stream with a sequence.
func storedBy(b []byte) (stream string, ok bool) {
	const most = 1 << 10
	if len(b) > most || !bytes.HasPrefix(b, []byte("{")) || !bytes.Contains(b, ackSeq) {
		return "", false
	}
	var ack struct {
		answer
		Stream string  `json:"stream"`
		Seq    *uint64 `json:"seq"`
	}
	if json.Unmarshal(b, &ack) != nil || ack.Stream == "" || ack.Seq == nil {
		return "", false
	}
	return ack.Stream, *ack.Seq > 0 || ack.failure() != nil
}

// fastAck reads {"stream":"…","seq":N}, and nothing else.
func fastAck(b []byte) (uint64, bool) {
	b, ok := bytes.CutPrefix(b, ackHead)
	if !ok {
		return 0, false
	}
	end := bytes.IndexByte(b, '"')
	if end <= 0 || end+2 > len(b) || b[end+1] != ',' {
		return 0, false
	}
	b = bytes.TrimPrefix(b[end+2:], []byte(" "))
	if b, ok = bytes.CutPrefix(b, ackSeq); !ok {
		return 0, false
	}
	b = bytes.TrimPrefix(b, []byte(" "))
	var seq uint64
	for i, c := range b {
		if c == '}' && i > 0 && i == len(b)-1 && seq > 0 {
			return seq, true
		}
		// 19 digits fit; longer numbers go to the full parser.
		if c < '0' || c > '9' || i >= 19 || (i == 0 && c == '0') {
			return 0, false
		}
		seq = seq*10 + uint64(c-'0')
	}
	return 0, false
}

package natsconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
)

// Msg is a received message. Data and Header belong to the receiver.
type Msg struct {
	Subject string
	Reply   string // empty when no answer is expected
	Header  Header // nil when there are none
	Data    []byte

	conn *Conn
}

// Respond answers the message. It is an error if the sender expects no answer, or expects it where
// the receiver alone might publish: on a subject of Drover or of the NATS server.
func (m Msg) Respond(h Header, body []byte) error {
	switch {
	case m.Reply == "" || m.conn == nil:
		return fmt.Errorf("%w: respond to %s: the message has no reply subject",
			ErrInvalid, m.Subject)
	case !subject.Answerable(m.Reply):
		return fmt.Errorf("%w: respond to %s: the reply subject %s is none for answers",
			ErrInvalid, m.Subject, m.Reply)
	}
	return m.conn.Publish(m.Reply, h, body)
}

// NobodyListens tells whether the message is the server's own answer to a request that nobody
// listens to.
func (m Msg) NobodyListens() bool { return noResponders(m.Header, m.Data) }

// OfServer tells whether a subject is one of the NATS server, JetStream under another prefix
// included ([Options].APIPrefix).
func (c *Conn) OfServer(subject string) bool {
	return strings.HasPrefix(subject, "$") || strings.HasPrefix(subject, c.api+".")
}

// FromStream tells whether the message is the word of a stream that has stored a request, or could
// not, and of which: one that somebody has made on the subject, to keep what is asked there. It
// comes before the answer, and is none.
func (m Msg) FromStream() (stream string, ok bool) { return storedBy(m.Data) }

func (c *Conn) msg(m *nats.Msg) Msg {
	return Msg{Subject: m.Subject, Reply: m.Reply, Header: m.Header, Data: m.Data, conn: c}
}

// Publish sends a core message: at most once, to whoever listens now. It fails with
// [ErrDisconnected] while the connection is down.
func (c *Conn) Publish(subject string, h Header, body []byte) error {
	return c.PublishReply(subject, "", h, body)
}

// maxLine is how many bytes subject and reply subject of a message may take: the server's line is
// 4096 by default, with the sizes of headers and body.
const maxLine = 4096 - 32

var errLine = fmt.Errorf("%w: with its reply subject it has more than %d bytes",
	nats.ErrBadSubject, maxLine)

// write hands a message to the library. One whose subjects the server would not read is refused
// here: the server closes the connection over it, and the library does not connect again then.
func (c *Conn) write(m *nats.Msg) error {
	if len(m.Subject)+len(m.Reply) > maxLine {
		return errLine
	}
	if c.borrowed && c.nc.IsReconnecting() {
		// its library may keep messages for later, ours never does
		return nats.ErrReconnectBufExceeded
	}
	return c.nc.PublishMsg(m)
}

// PublishReply is Publish with a subject for the answer.
func (c *Conn) PublishReply(subject, reply string, h Header, body []byte) error {
	if err := c.write(&nats.Msg{Subject: subject, Reply: reply, Header: h, Data: body}); err != nil {
		return fmt.Errorf("publish %s: %w", subject, fromNATS(err))
	}
	return nil
}

// Request sends a core request once and waits for one answer. It waits for the connection first.
// Errors: [ErrNoResponders] when nobody listens, [ErrTimeout] when no answer came, so that it is
// unknown what became of it, [ErrDisconnected] when nothing was sent until ctx ended,
// [*RefusedError] when the server refuses the subject or its answer to this user. Without a
// deadline in ctx, Options.RequestTimeout holds. The word of a stream that takes the subject is no
// answer; see [Msg.FromStream].
func (c *Conn) Request(ctx context.Context, subject string, h Header, body []byte) (Msg, error) {
	return c.RequestEvery(ctx, 0, subject, h, body)
}

// RequestEvery is Request that sends the same bytes again after each such time without an answer;
// the first answer to any of them counts. It is for questions to a queue that may be asked twice:
// one of those who answer there may have stopped without a word, and what took longer is heard all
// the same.
func (c *Conn) RequestEvery(
	ctx context.Context, every time.Duration, subject string, h Header, body []byte,
) (Msg, error) {
	return c.request(ctx, every, subject, h, body, func(m *nats.Msg) bool {
		stream, ok := storedBy(m.Data)
		if ok {
			c.log.WithField("subject", subject).WithField("stream", stream).
				Log(c.logged.level("stream "+stream), "a stream that is not Drover's takes requests and "+
					"answers them: take the subject out of it, or give it no_ack")
		}
		return !ok
	})
}

// RequestAny is Request for which the word of a stream is an answer as any other.
func (c *Conn) RequestAny(ctx context.Context, subject string, h Header, body []byte) (Msg, error) {
	return c.request(ctx, 0, subject, h, body, nil)
}

// request is RequestEvery with a choice of answers; nil wants any.
func (c *Conn) request(
	ctx context.Context, every time.Duration, subject string, h Header, body []byte,
	wanted func(*nats.Msg) bool,
) (Msg, error) {
	m, err := c.publish(ctx, every, &nats.Msg{Subject: subject, Header: h, Data: body}, wanted)
	if err == nil && noResponders(m.Header, m.Data) {
		err = fmt.Errorf("%s: %w", subject, ErrNoResponders)
	}
	switch {
	case err == nil:
		return c.msg(m), nil
	case errors.Is(ctx.Err(), context.Canceled) && errors.Is(err, ErrTimeout):
		// the caller's wish, not a timeout
		return Msg{}, fmt.Errorf("request %s: %w", subject, ctx.Err())
	default:
		return Msg{}, fmt.Errorf("request %w", err)
	}
}

// Subscription is interest in a core subject.
type Subscription interface {
	// Close ends the interest at once; messages that wait are dropped.
	Close() error
	// Drain ends the interest, lets fn finish what was received, and returns when it has or when
	// ctx ends. Messages that are on their way meanwhile are not lost, except on an in-process
	// connection.
	Drain(ctx context.Context) error
}

// Subscribe calls fn for each message on subject, one at a time, in order, from a goroutine of its
// own. With a queue name, each message goes to one of the subscribers of that queue. fn may block:
// 500,000 messages or 64 MB may wait, then messages are dropped and logged. On a subject of Drover
// fn does not get what the NATS server has given out, or said itself: see [Given].
func (c *Conn) Subscribe(subj, queue string, fn func(Msg)) (Subscription, error) {
	s := &subscription{conn: c, ended: make(chan struct{})}
	if subject.Reserved(subj) {
		fn = c.unasked(fn)
	}
	sub, err := c.nc.QueueSubscribe(subj, queue, func(m *nats.Msg) { fn(c.msg(m)) })
	if err != nil {
		return nil, fmt.Errorf("subscribe %s: %w", subj, fromNATS(err))
	}
	s.sub = sub
	forget := func() {}
	if c.borrowed { // nobody else ends it with the Conn
		forget = c.OnClose(func() { _ = unsubscribe(sub) })
	}
	sub.SetClosedHandler(func(string) {
		close(s.ended)
		forget()
	})
	return s, nil
}

type subscription struct {
	conn  *Conn
	sub   *nats.Subscription
	ended chan struct{} // closed when fn will not be called again
}

func (s *subscription) Close() error { return unsubscribe(s.sub) }

func unsubscribe(sub *nats.Subscription) error {
	if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrBadSubscription) {
		return fmt.Errorf("unsubscribe %s: %w", sub.Subject, fromNATS(err))
	}
	return nil
}

// withdraw ends a subscription and returns when the server knows: what it sends from then on goes
// to others. It waits for no longer than closePatience and ctx; on a connection that is cut, or
// slow, the server may go on sending to nobody for a while.
func (c *Conn) withdraw(ctx context.Context, sub *nats.Subscription) error {
	err := unsubscribe(sub)
	if err == nil && c.nc.IsConnected() {
		ctx, cancel := context.WithTimeout(ctx, closePatience)
		defer cancel()
		_ = c.nc.FlushWithContext(ctx) // it tells that the wait was in vain, as it may be
	}
	return err
}

// drainPoll is how often the in-process drain looks at the queue.
const drainPoll = time.Millisecond

func (s *subscription) Drain(ctx context.Context) error {
	if s.conn.inProcess {
		// The library's drain uses its process-wide timers; see the package comment on virtual
		// time.
		for {
			if n, _, err := s.sub.Pending(); err != nil || n == 0 {
				return s.conn.withdraw(ctx, s.sub)
			}
			if sleep.For(ctx, drainPoll) != nil {
				return fmt.Errorf("drain %s: %w", s.sub.Subject, ctx.Err())
			}
		}
	}
	if err := s.sub.Drain(); err != nil {
		return fmt.Errorf("drain %s: %w", s.sub.Subject, fromNATS(err))
	}
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drain %s: %w", s.sub.Subject, ctx.Err())
	}
}

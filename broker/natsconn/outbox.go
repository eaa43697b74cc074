package natsconn

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	defaultAckTimeout = 10 * time.Second
	firstRing         = 256
	// reconnectGrace is how long an acknowledgement may still come after a reconnect. Those of the
	// lost connection were lost with it, and the writer should find out what became of its writes
	// rather than wait.
	reconnectGrace = time.Second
)

// OutboxOptions tunes an [Outbox]; the zero value is good.
type OutboxOptions struct {
	// Timeout is how long an acknowledgement may take. Defaults to 10 seconds.
	Timeout time.Duration
	// Grace is how long an acknowledgement may still come after a reconnect. Defaults to 1 second.
	Grace time.Duration
	// Group is how many messages are stored together at most, up to 1,000; they must be for one
	// stream, which allows atomic batches. While messages are on their way others wait. It pays
	// with a server that syncs each message and gathers batches in memory. Defaults to 0: each
	// message goes at once.
	Group int
	// Answer reads the answer of a program that listens on the subjects, and returns why that did
	// not take the message; an [Ack] has no more then. The word of a stream that takes the subject
	// is no answer. Defaults to nil: a stream acknowledges.
	Answer func(body []byte) error
}

// Outbox publishes to JetStream, or to a program that answers (see OutboxOptions.Answer), without
// waiting, for one writer. Messages go out in the order of the calls to Send, so a pipeline of
// expected sequences works. It never sends a message twice.
//
// Each message gets exactly one outcome. Outcomes are delivered one at a time, by the goroutine
// that receives acknowledgements, or by the one that sweeps timeouts while the first is idle.
// Acknowledgements come in the order in which the server answers.
type Outbox struct {
	conn    *Conn
	sub     *nats.Subscription
	prefix  string // "<inbox>."
	timeout time.Duration
	grace   time.Duration      // after a reconnect
	answer  func([]byte) error // nil: a stream acknowledges
	start   time.Time          // the clock's zero: deadlines are monotonic durations since then
	unhook  []func()
	kick    chan struct{} // wakes the sweeper: something failed locally, or a deadline came nearer
	quit    chan struct{}
	stopped chan struct{}

	calling chanMutex // held while an outcome is delivered

	sending sync.Mutex // orders Send; guards msg, buf and group
	msg     nats.Msg
	buf     []byte
	group   grouping

	mu     sync.Mutex
	closed bool
	armed  bool             // the sweeper's timer runs
	ring   []pendingMessage // outstanding messages, by number modulo its length (a power of two)
	head   uint64           // the oldest number that may be outstanding
	next   uint64           // the next number
	failed []outcome
}

// pendingMessage is one message on its way. Deadlines never fall from one number to the next.
type pendingMessage struct {
	done     func(Ack) // nil = not outstanding
	subject  string
	deadline time.Duration
}

type outcome struct {
	done func(Ack)
	ack  Ack
}

// NewOutbox starts an outbox. Close it when the writer ends.
func (c *Conn) NewOutbox(o OutboxOptions) (*Outbox, error) {
	if o.Timeout < 0 {
		return nil, fmt.Errorf("%w: OutboxOptions.Timeout is %v, want 0 for the default or more",
			ErrInvalid, o.Timeout)
	}
	if o.Grace < 0 {
		return nil, fmt.Errorf("%w: OutboxOptions.Grace is %v, want 0 for the default or more",
			ErrInvalid, o.Grace)
	}
	if o.Group < 0 || o.Group > maxGroup {
		return nil, fmt.Errorf("%w: OutboxOptions.Group is %d, want 0 for none, or up to %d",
			ErrInvalid, o.Group, maxGroup)
	}
	b := &Outbox{
		group: grouping{most: o.Group, prefix: rand.Text()[:12] + "-"}, conn: c,
		prefix: c.nc.NewInbox() + ".", timeout: cmp.Or(o.Timeout, defaultAckTimeout),
		grace: cmp.Or(o.Grace, reconnectGrace), answer: o.Answer,
		start: time.Now(), kick: make(chan struct{}, 1),
		quit: make(chan struct{}), stopped: make(chan struct{}),
		ring: make([]pendingMessage, firstRing), calling: make(chanMutex, 1),
	}
	err := c.hears()
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	if b.sub, err = c.nc.Subscribe(b.prefix+"*", b.receive); err != nil {
		return nil, fmt.Errorf("outbox: %w", fromNATS(err))
	}
	// A dropped acknowledgement would turn a stored write into an unknown one.
	if err = b.sub.SetPendingLimits(-1, -1); err != nil {
		return nil, fmt.Errorf("outbox: %w", fromNATS(err))
	}
	b.unhook = []func(){c.OnReconnect(b.hurry), c.OnRefused(b.refused)}
	go b.sweep()
	if err = c.adopt(b); err != nil {
		b.Close()
		return nil, fmt.Errorf("outbox: %w", err)
	}
	return b, nil
}

// Send publishes a message and returns at once; done gets the outcome, exactly once, never from
// inside Send. It may call Send. It must not block and must not call Close. h and body may be used
// again when Send returns.
func (b *Outbox) Send(subject string, h Header, body []byte, done func(Ack)) {
	if done == nil {
		done = func(Ack) {}
	}
	b.sending.Lock()
	defer b.sending.Unlock()
	n, ok := b.reserve(subject, done)
	if !ok {
		go b.deliver(outcome{done, Ack{Err: fmt.Errorf("outbox: %w", ErrClosed)}})
		return
	}
	if b.group.most > 0 {
		b.group.waiting = append(b.group.waiting,
			newOutgoing(n, subject, h, body, int(b.conn.MaxPayload())))
		b.depart()
		return
	}
	b.msg = nats.Msg{Subject: subject, Reply: b.reply(n), Header: h, Data: body}
	if err := b.conn.write(&b.msg); err != nil {
		b.failSend(n, subject, err)
	}
	b.msg = nats.Msg{}
}

// reply is the subject for the answer to a message. The caller holds sending.
func (b *Outbox) reply(n uint64) string {
	b.buf = strconv.AppendUint(append(b.buf[:0], b.prefix...), n, 36)
	return string(b.buf)
}

func (b *Outbox) failSend(n uint64, subject string, err error) {
	b.fail(n, fmt.Errorf("publish %s: %w", subject, fromNATS(err)))
}

// Outstanding is how many messages have no outcome yet.
func (b *Outbox) Outstanding() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.failed)
	for i := b.head; i != b.next; i++ {
		if b.slot(i).done != nil {
			n++
		}
	}
	return n
}

// Close gives every outstanding message the outcome [ErrClosed] and returns when that is done.
func (b *Outbox) Close() {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		<-b.stopped
		return
	}
	b.closed = true
	b.mu.Unlock()
	b.conn.disown(b)
	for _, remove := range b.unhook {
		remove()
	}
	_ = b.sub.Unsubscribe() // it fails only when the connection is closed already
	close(b.quit)
	<-b.stopped
}

func (b *Outbox) slot(n uint64) *pendingMessage { return &b.ring[n&uint64(len(b.ring)-1)] }

// reserve takes the next number.
func (b *Outbox) reserve(subject string, done func(Ack)) (n uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, false
	}
	if b.next-b.head == uint64(len(b.ring)) {
		b.grow()
	}
	n = b.next
	b.next++
	*b.slot(n) = pendingMessage{done: done, subject: subject, deadline: time.Since(b.start) + b.timeout}
	if !b.armed {
		b.armed = true
		b.wake()
	}
	return n, true
}

// grow doubles the ring. It happens only while the oldest message is outstanding.
func (b *Outbox) grow() {
	old := b.ring
	b.ring = make([]pendingMessage, 2*len(old))
	for n := b.head; n != b.next; n++ {
		*b.slot(n) = old[n&uint64(len(old)-1)]
	}
}

// take removes a message that got its outcome. The caller holds mu.
func (b *Outbox) take(n uint64) func(Ack) {
	if n < b.head || n >= b.next {
		return nil
	}
	done := b.slot(n).done
	*b.slot(n) = pendingMessage{}
	for b.head != b.next && b.slot(b.head).done == nil {
		b.head++
	}
	return done
}

// fail hands a message that could not be sent to the sweeper.
func (b *Outbox) fail(n uint64, err error) {
	b.mu.Lock()
	if done := b.take(n); done != nil {
		b.failed = append(b.failed, outcome{done, Ack{Err: err}})
	}
	b.mu.Unlock()
	b.wake()
}

func (b *Outbox) wake() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

func (b *Outbox) deliver(all ...outcome) {
	b.calling.lock()
	defer b.calling.unlock()
	for _, o := range all {
		o.done(o.ack)
	}
}

func (b *Outbox) receive(m *nats.Msg) {
	n, err := strconv.ParseUint(m.Subject[min(len(b.prefix), len(m.Subject)):], 36, 64)
	if err != nil {
		return
	}
	ack, ok := b.parse(m)
	if !ok {
		return
	}
	// Held from before the message is taken, so that Close returns after the last outcome.
	b.calling.lock()
	defer b.calling.unlock()
	if b.group.most > 0 {
		b.received(n, ack)
		return
	}
	b.mu.Lock()
	done := b.take(n)
	b.mu.Unlock()
	if done != nil { // nil: late, its timeout was delivered before
		done(ack)
	}
}

// parse reads an answer, if m is one.
func (b *Outbox) parse(m *nats.Msg) (ack Ack, ok bool) {
	if b.answer == nil {
		return parseAck(m), true
	}
	if noResponders(m.Header, m.Data) {
		return Ack{Err: ErrNoResponders}, true
	}
	if _, stored := storedBy(m.Data); stored {
		return Ack{}, false
	}
	return Ack{Err: b.answer(m.Data)}, true
}

// hurry brings deadlines nearer after a reconnect.
func (b *Outbox) hurry() {
	b.mu.Lock()
	limit := time.Since(b.start) + b.grace
	for n := b.head; n != b.next; n++ {
		s := b.slot(n)
		s.deadline = min(s.deadline, limit)
	}
	b.mu.Unlock()
	b.wake()
}

// GiveUp gives every message on a subject that begins with prefix its outcome at once,
// [ErrTimeout]: for a writer who hears that nobody is left who could answer.
func (b *Outbox) GiveUp(prefix string) {
	b.failAll(func(subject string) error {
		if !strings.HasPrefix(subject, prefix) {
			return nil
		}
		return OutcomeUnknown(fmt.Errorf("publish %s: %w: whoever was to answer is gone",
			subject, ErrTimeout))
	})
}

// refused gives every message that the server refused its outcome at once. If it refused the
// outbox's inbox, that is all of them, and what became of them is unknown.
func (b *Outbox) refused(e *RefusedError) {
	b.failAll(func(subject string) error {
		if !e.covers(subject, b.prefix) {
			return nil
		}
		err := fmt.Errorf("publish %s: %w", subject, e)
		if e.Subscribe {
			err = OutcomeUnknown(fmt.Errorf("%w (%w)", err, ErrTimeout))
		}
		return err
	})
}

// failAll hands every outstanding message to the sweeper for which why has an error.
func (b *Outbox) failAll(why func(subject string) error) {
	b.mu.Lock()
	for n := b.head; n != b.next; n++ {
		s := b.slot(n)
		if s.done == nil {
			continue
		}
		if err := why(s.subject); err != nil {
			b.failed = append(b.failed, outcome{s.done, Ack{Err: err}})
			*s = pendingMessage{}
		}
	}
	b.mu.Unlock()
	b.wake()
}

// sweep is the one goroutine for timeouts and local failures; a timer per message would cost more
// than the message.
func (b *Outbox) sweep() {
	defer close(b.stopped)
	timer := time.NewTimer(b.timeout)
	defer timer.Stop()
	for {
		select {
		case <-b.quit:
			b.deliver(b.drop()...)
			return
		case <-b.kick:
		case <-timer.C:
		}
		late, next := b.expired()
		if b.group.most > 0 {
			b.sending.Lock()
			b.depart() // what failed or is late holds the others up no longer
			b.sending.Unlock()
		}
		b.deliver(late...)
		timer.Reset(next)
	}
}

// expired removes what failed or is past its deadline, and says when to look again.
func (b *Outbox) expired() (late []outcome, next time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	late, b.failed = b.failed, nil
	now := time.Since(b.start)
	for ; b.head != b.next; b.head++ {
		s := b.slot(b.head)
		if s.done == nil {
			continue
		}
		if s.deadline > now {
			b.armed = true
			return late, s.deadline - now
		}
		sent := b.start.Add(s.deadline - b.timeout)
		late = append(late, outcome{
			s.done,
			Ack{Err: OutcomeUnknown(b.conn.unanswered(s.subject, b.prefix, sent,
				context.DeadlineExceeded))},
		})
		*s = pendingMessage{}
	}
	b.armed = false
	return late, b.timeout
}

// drop removes everything when the outbox closes.
func (b *Outbox) drop() []outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.failed
	b.failed = nil
	for ; b.head != b.next; b.head++ {
		if s := b.slot(b.head); s.done != nil {
			all = append(all,
				outcome{s.done, Ack{Err: fmt.Errorf("outbox, %s: %w", s.subject, ErrClosed)}})
			*s = pendingMessage{}
		}
	}
	return all
}

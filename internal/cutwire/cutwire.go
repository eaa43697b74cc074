// Package cutwire places a crash exactly: it stands between a NATS client and an embedded server,
// sees every message the client publishes, and lets a test decide what becomes of it.
//
// A process that is killed with -9 stops between two of its messages. To the rest of the world that
// is a connection that ends there, and no other follows: [Wire.Kill]. A lost acknowledgement is a
// message that is executed while its answer never comes: to a client that dies of it by [CutAfter],
// to one that lives on by [Unanswered]. What an unlucky network makes of a message besides is
// [Twice] and [Late], and of answers [Wire.Lag]. Only tests use it.
package cutwire

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Verdict says what becomes of a message.
type Verdict int

// The verdicts.
const (
	// Pass lets the message through.
	Pass Verdict = iota
	// CutBefore kills the client before the message reaches the server.
	CutBefore
	// CutAfter kills the client as soon as the message has reached the server: whatever it causes
	// happens, and the client never learns of it.
	CutAfter
	// Swallow drops the message: the client waits for an answer in vain.
	Swallow
	// Break ends this connection after the message, as a network would; the client may connect
	// again.
	Break
	// Unanswered lets the message through and loses whatever is answered: the client waits in vain,
	// on a connection that lives. The answers go to [Lost].
	Unanswered
	// Twice lets the message through two times.
	Twice
	// Late lets the message through after [Wire.Delay]; those after it overtake it. It is lost if
	// its connection has ended by then.
	Late
)

// Lost is the subject that answers go to which are lost. A test that subscribes to it sees what the
// client did not; and a pull request, which the server drops if nobody listens for its answer, is
// then executed.
const Lost = "_LOST"

const defaultDelay = 5 * time.Second

// Provider is what embedded servers are connected through (nats.InProcessConnProvider).
type Provider interface{ InProcessConn() (net.Conn, error) }

// Wire is a Provider in front of another.
type Wire struct {
	server Provider

	mu     sync.Mutex
	judge  func(subject string, body []byte) Verdict
	hear   atomic.Pointer[func([]byte)]
	delay  time.Duration
	dead   bool
	conns  map[*conn]struct{}
	killed chan struct{}
	lag    atomic.Int64 // nanoseconds
}

// ErrKilled is what a killed client sees.
var ErrKilled = errors.New("cutwire: this process is dead")

// New returns a wire to a server. Until Judge is called everything passes.
func New(server Provider) *Wire {
	return &Wire{
		server: server, delay: defaultDelay, conns: make(map[*conn]struct{}),
		killed: make(chan struct{}),
	}
}

// Delay sets how late a message is that is [Late]. It is 5 s until then.
func (w *Wire) Delay(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

// Lag sets how late everything is that the server sends. It is 0 until then.
func (w *Wire) Lag(d time.Duration) { w.lag.Store(int64(d)) }

// Hear lets f change, in place, what the server sends from now on, as it comes: mostly in whole
// messages.
func (w *Wire) Hear(f func([]byte)) { w.hear.Store(&f) }

// Judge lets f decide over every message that is published from now on. It is called with the wire
// locked, so it may keep state of its own; it must not publish.
func (w *Wire) Judge(f func(subject string, body []byte) Verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge = f
}

// Kill ends every connection, and no other will be made.
func (w *Wire) Kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kill()
}

// Killed is closed once the client is dead.
func (w *Wire) Killed() <-chan struct{} { return w.killed }

func (w *Wire) kill() {
	if w.dead {
		return
	}
	w.dead = true
	close(w.killed)
	for c := range w.conns {
		c.Conn.Close()
	}
}

// InProcessConn implements nats.InProcessConnProvider.
func (w *Wire) InProcessConn() (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return nil, ErrKilled
	}
	inner, err := w.server.InProcessConn()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, wire: w}
	w.conns[c] = struct{}{}
	return c, nil
}

// conn reads the client's side of the NATS protocol, message by message.
type conn struct {
	net.Conn
	wire *Wire
	rest []byte // the beginning of a message whose end is still to come
}

func (c *conn) Close() error {
	c.wire.mu.Lock()
	delete(c.wire.conns, c)
	c.wire.mu.Unlock()
	return c.Conn.Close()
}

// Read hands on what the server has sent, with the wire's lag.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if lag := c.wire.lag.Load(); lag > 0 {
		time.Sleep(time.Duration(lag))
	}
	if f := c.wire.hear.Load(); f != nil {
		(*f)(b[:n])
	}
	return n, err
}

// Write forwards whole messages, each after its verdict.
func (c *conn) Write(b []byte) (int, error) {
	c.rest = append(c.rest, b...)
	for {
		n, subject, body, whole := next(c.rest)
		if !whole {
			return len(b), nil
		}
		message := c.rest[:n]
		if err := c.forward(message, subject, body); err != nil {
			return 0, err
		}
		c.rest = append(c.rest[:0:0], c.rest[n:]...)
	}
}

func (c *conn) forward(message []byte, subject string, body []byte) error {
	verdict := Pass
	c.wire.mu.Lock()
	if c.wire.dead {
		c.wire.mu.Unlock()
		return ErrKilled
	}
	if subject != "" && c.wire.judge != nil {
		verdict = c.wire.judge(subject, body)
	}
	if verdict == CutBefore {
		c.wire.kill()
		c.wire.mu.Unlock()
		return ErrKilled
	}
	delay := c.wire.delay
	c.wire.mu.Unlock()
	switch verdict {
	case Swallow:
		return nil
	case Late:
		late := bytes.Clone(message)
		// whole messages: a Write is not torn apart by another
		time.AfterFunc(delay, func() { _, _ = c.Conn.Write(late) })
		return nil
	case Unanswered:
		message = unanswered(message)
	case Twice:
		message = bytes.Repeat(message, 2)
	}
	if _, err := c.Conn.Write(message); err != nil {
		return err
	}
	switch verdict {
	case CutAfter:
		c.wire.Kill()
		return ErrKilled
	case Break:
		c.Conn.Close()
		return net.ErrClosed
	}
	return nil
}

// unanswered gives a publish another reply subject, if it has one.
func unanswered(message []byte) []byte {
	line, rest, _ := bytes.Cut(message, []byte("\r\n"))
	fields := bytes.Fields(line)
	if n := len(fields); n == 4 && bytes.EqualFold(fields[0], []byte("PUB")) || n == 5 {
		fields[2] = []byte(Lost)
	}
	return slices.Concat(bytes.Join(fields, []byte(" ")), []byte("\r\n"), rest)
}

// next finds the first protocol message in b: its length and, if it is a publish, subject and body
// (headers included).
func next(b []byte) (n int, subject string, body []byte, whole bool) {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 0 {
		return 0, "", nil, false
	}
	fields := bytes.Fields(b[:end])
	if len(fields) < 3 ||
		!bytes.EqualFold(fields[0], []byte("PUB")) && !bytes.EqualFold(fields[0], []byte("HPUB")) {
		return end + 2, "", nil, true
	}
	size, err := strconv.Atoi(string(fields[len(fields)-1]))
	if err != nil {
		return end + 2, "", nil, true
	}
	if n = end + 2 + size + 2; len(b) < n {
		return 0, "", nil, false
	}
	return n, string(fields[1]), b[end+2 : end+2+size], true
}

package natsconn

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// coalesceMost is how many bytes wait for the writers before who brings more must wait too, as
	// with a socket that is full.
	coalesceMost = 1 << 20
	// coalesceEnough is how many bytes do not wait for others: who reads them may begin.
	coalesceEnough = 16 << 10
	// coalesceKept is the largest buffer that is kept for the next writes.
	coalesceKept = 256 << 10
	// coalesceTurns is how often the writer lets others run before it writes.
	coalesceTurns = 2
	// writeLimit is how long one write may take. The client library sets the same limit on a
	// connection of its own.
	writeLimit = time.Minute
	// closeLimit is how long Close waits for what was written before it.
	closeLimit = time.Second
)

// coalescer is a connection that writes together what is written in one moment. The client library
// flushes in a goroutine that wakes with the first message, so on a busy machine every message was
// a write of its own, a read of its own at the server, and a write of its own from there to whoever
// it was for: a W1 workflow had 14 writes in its worker's process alone. Here a writer of its own
// lets every goroutine that is ready run first. Whoever is alone with its message waits for
// nothing, and the busier a process is the more goes into one write. No time is waited: a clock
// would cost an idle caller what it saves a busy one. What has come to coalesceEnough waits for
// nobody: a second writer takes it, so that whoever reads can work meanwhile. The callers do not
// write themselves, since the client library holds its lock while it calls Write.
//
// What Write has taken may be lost with the connection, as what the kernel has taken may be. An
// error of a writer closes the connection, so that the reader notices, and is returned by the next
// Write.
type coalescer struct {
	net.Conn
	most  time.Time // no deadline is later; zero for no such limit
	ahead []byte    // was read, and not given to the reader yet; the reader's
	// of one place, for the writer that waits for others: there is something to write, or the end
	wake    chan struct{}
	hurry   chan struct{} // of one place, for the writer that does not: there is enough
	writers sync.WaitGroup

	mu      sync.Mutex
	room    sync.Cond // a writer took what waited, ended its write, or failed
	waiting []byte
	pool    []byte // of the last write
	busy    bool   // a writer writes
	err     error
	closing bool
}

func newCoalescer(c net.Conn) *coalescer {
	g := makeCoalescer(c)
	g.writers.Go(func() { g.write(g.wake, coalesceTurns) })
	g.writers.Go(func() { g.write(g.hurry, 0) })
	return g
}

// makeCoalescer is one without writers.
func makeCoalescer(c net.Conn) *coalescer {
	g := &coalescer{Conn: c, wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1)}
	g.room.L = &g.mu
	return g
}

// Write takes b for the writers, and waits only while too much waits already.
func (g *coalescer) Write(b []byte) (int, error) {
	g.mu.Lock()
	for len(g.waiting) > 0 && len(g.waiting)+len(b) > coalesceMost && g.err == nil && !g.closing {
		g.room.Wait()
	}
	err := g.err
	if g.closing && err == nil {
		err = net.ErrClosed
	}
	writer := g.wake
	if err == nil {
		g.waiting = append(g.waiting, b...)
		if len(g.waiting) >= coalesceEnough {
			writer = g.hurry
		}
	}
	g.mu.Unlock()
	if err != nil {
		return 0, err
	}
	signal(writer)
	return len(b), nil
}

// rouse wakes both writers, for the end.
func (g *coalescer) rouse() {
	signal(g.wake)
	signal(g.hurry)
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// write is a writer that lets others run as often as turns says before it writes. It ends with the
// first error, or with the last byte before Close.
func (g *coalescer) write(wake <-chan struct{}, turns int) {
	for range wake {
		for range turns {
			runtime.Gosched()
		}
		if !g.push() {
			return
		}
	}
}

// push writes what waits, after what the other writer has in hand, and reports whether there can be
// more.
func (g *coalescer) push() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.busy {
		g.room.Wait()
	}
	if g.err != nil {
		return false
	}
	closing := g.closing
	if out := g.waiting; len(out) > 0 {
		g.waiting, g.pool, g.busy = g.pool[:0], nil, true
		g.room.Broadcast()
		g.mu.Unlock()
		err := g.send(out)
		g.mu.Lock()
		g.busy = false
		if cap(out) <= coalesceKept {
			g.pool = out
		}
		if err != nil {
			g.fail(err)
		}
		g.room.Broadcast()
	}
	return !closing && g.err == nil
}

func (g *coalescer) send(b []byte) error {
	g.mu.Lock()
	if !g.closing { // then Close has set a limit
		// a broken connection refuses the write itself
		_ = g.Conn.SetWriteDeadline(time.Now().Add(writeLimit))
	}
	g.mu.Unlock()
	_, err := g.Conn.Write(b)
	return err
}

// fail notes the error and sends the writers home. The caller holds g.mu.
func (g *coalescer) fail(err error) {
	g.err, g.waiting = err, nil
	g.rouse()
	_ = g.Conn.Close() // whoever reads it learns that it is broken
}

// Close writes what was taken before it, for a moment, and closes the connection.
func (g *coalescer) Close() error {
	g.mu.Lock()
	first := !g.closing
	g.closing = true
	if first {
		_ = g.Conn.SetWriteDeadline(time.Now().Add(closeLimit))
	}
	g.room.Broadcast()
	g.mu.Unlock()
	g.rouse()
	g.writers.Wait()
	return g.Conn.Close()
}

// SetWriteDeadline does nothing: each write has a limit of its own, which counts from when it
// begins.
func (g *coalescer) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is for reading only, for the same reason. The client library sets one while it
// connects.
func (g *coalescer) SetDeadline(t time.Time) error {
	if !t.IsZero() && !g.most.IsZero() && g.most.Before(t) {
		t = g.most
	}
	return g.SetReadDeadline(t)
}

// dialing is told of each try to connect, and bounds those of the first connection.
type dialing struct {
	dialed  func()
	until   atomic.Pointer[time.Time] // nil for no limit
	reached atomic.Bool               // somebody took a connection, over a socket
}

// begin notes a try, and returns until when it may last; zero for no limit.
func (d *dialing) begin() time.Time {
	d.dialed()
	if t := d.until.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// coalesce is newCoalescer for a connection that is made until then.
func (d *dialing) coalesce(c net.Conn, until time.Time) net.Conn {
	g := newCoalescer(c)
	g.most = until
	return g
}

// gatheredDialer dials as the client library does, for [nats.SetCustomDialer].
type gatheredDialer struct {
	net.Dialer
	*dialing
}

// Dial connects, and gathers what is written.
func (d *gatheredDialer) Dial(network, address string) (net.Conn, error) {
	one := d.Dialer
	one.Deadline = d.begin()
	c, err := one.Dial(network, address)
	if err != nil {
		return nil, err
	}
	d.reached.Store(true)
	return d.coalesce(c, one.Deadline), nil
}

// gatheredPipes are connections without a socket that gather what is written.
type gatheredPipes struct {
	from nats.InProcessConnProvider
	*dialing
}

// InProcessConn is for [nats.InProcessServer].
func (p gatheredPipes) InProcessConn() (net.Conn, error) {
	until := p.begin()
	c, err := p.from.InProcessConn()
	if err != nil {
		return nil, err
	}
	return p.coalesce(c, until), nil
}

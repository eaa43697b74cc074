package post

import (
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// gatherMost is how many bytes wait for the writer before who brings more must wait too, as with a socket that is full.
	gatherMost = 1 << 20
	// gatherKept is the largest buffer that is kept for the next writes.
	gatherKept = 256 << 10
	// gatherTurns is how often the writer lets others run before it writes.
	gatherTurns = 2
	// writeLimit is how long one write may take. The client library sets the same limit on a connection of its own.
	writeLimit = time.Minute
	// closeLimit is how long Close waits for what was written before it.
	closeLimit = time.Second
)

// gather is a connection that writes together what is written in one moment. The client library flushes in a goroutine that
// wakes with the first message, so on a busy machine every message was a write of its own, a read of its own at the server,
// and a write of its own from there to whoever it was for: a W1 workflow had 14 writes in its worker's process alone. Here a
// writer of its own lets every goroutine that is ready run first. Whoever is alone with its message waits for nothing, and the
// busier a process is the more goes into one write. No time is waited: a clock would cost an idle caller what it saves a busy
// one.
//
// What Write has taken may be lost with the connection, as what the kernel has taken may be. An error of the writer closes the
// connection, so that the reader notices, and is returned by the next Write.
type gather struct {
	net.Conn
	wake chan struct{} // of one place: there is something to write, or the end
	done chan struct{} // closed when the writer is gone

	mu      sync.Mutex
	room    sync.Cond // the writer took what waited, or failed
	waiting []byte
	err     error
	closing bool
}

func newGather(c net.Conn) *gather {
	g := &gather{Conn: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
	g.room.L = &g.mu
	go g.write()
	return g
}

// Write takes b for the writer, and waits only while too much waits already.
func (g *gather) Write(b []byte) (int, error) {
	g.mu.Lock()
	for len(g.waiting) > 0 && len(g.waiting)+len(b) > gatherMost && g.err == nil && !g.closing {
		g.room.Wait()
	}
	err := g.err
	if g.closing && err == nil {
		err = net.ErrClosed
	}
	if err == nil {
		g.waiting = append(g.waiting, b...)
	}
	g.mu.Unlock()
	if err != nil {
		return 0, err
	}
	g.signal()
	return len(b), nil
}

func (g *gather) signal() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// write is the writer. It ends with the first error, or with the last byte before Close.
func (g *gather) write() {
	defer close(g.done)
	var spare []byte
	for range g.wake {
		for range gatherTurns {
			runtime.Gosched()
		}
		g.mu.Lock()
		out, closing := g.waiting, g.closing
		g.waiting = spare[:0]
		g.room.Broadcast()
		g.mu.Unlock()
		if len(out) > 0 {
			if err := g.send(out); err != nil {
				g.fail(err)
				return
			}
		}
		if closing {
			return
		}
		if spare = out; cap(spare) > gatherKept {
			spare = nil
		}
	}
}

func (g *gather) send(b []byte) error {
	g.mu.Lock()
	if !g.closing { // then Close has set a limit
		_ = g.Conn.SetWriteDeadline(time.Now().Add(writeLimit)) // a broken connection refuses the write itself
	}
	g.mu.Unlock()
	_, err := g.Conn.Write(b)
	return err
}

func (g *gather) fail(err error) {
	g.mu.Lock()
	g.err, g.waiting = err, nil
	g.room.Broadcast()
	g.mu.Unlock()
	_ = g.Conn.Close() // whoever reads it learns that it is broken
}

// Close writes what was taken before it, for a moment, and closes the connection.
func (g *gather) Close() error {
	g.mu.Lock()
	first := !g.closing
	g.closing = true
	if first {
		_ = g.Conn.SetWriteDeadline(time.Now().Add(closeLimit))
	}
	g.room.Broadcast()
	g.mu.Unlock()
	g.signal()
	<-g.done
	return g.Conn.Close()
}

// SetWriteDeadline does nothing: each write has a limit of its own, which counts from when it begins.
func (g *gather) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is for reading only, for the same reason.
func (g *gather) SetDeadline(t time.Time) error { return g.SetReadDeadline(t) }

// gatheredDialer dials as the client library does, for [nats.SetCustomDialer].
type gatheredDialer struct {
	net.Dialer
	dialed func()
}

// Dial connects, and gathers what is written.
func (d *gatheredDialer) Dial(network, address string) (net.Conn, error) {
	d.dialed()
	c, err := d.Dialer.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return newGather(c), nil
}

// gatheredPipes are connections without a socket that gather what is written.
type gatheredPipes struct {
	from   nats.InProcessConnProvider
	dialed func()
}

// InProcessConn is for [nats.InProcessServer].
func (p gatheredPipes) InProcessConn() (net.Conn, error) {
	p.dialed()
	c, err := p.from.InProcessConn()
	if err != nil {
		return nil, err
	}
	return newGather(c), nil
}

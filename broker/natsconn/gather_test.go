package natsconn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/internal/virtual"
)

// slowConn keeps what is written to it. Each write waits for a place in pass, and then ends as fails says.
type slowConn struct {
	net.Conn // the other methods, by a pipe that nobody reads
	pass     chan struct{}
	fails    error

	mu     sync.Mutex
	writes []string
	closed bool
}

func newSlowConn(t *testing.T) *slowConn {
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return &slowConn{Conn: near, pass: make(chan struct{}, 100)}
}

func (c *slowConn) Write(b []byte) (int, error) {
	<-c.pass
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails != nil {
		return 0, c.fails
	}
	c.writes = append(c.writes, string(b))
	return len(b), nil
}

func (c *slowConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.Conn.Close()
}

func (c *slowConn) state() (writes []string, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes, c.closed
}

func mustWrite(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("write %.20q: got %d, %v", text, n, err)
	}
}

// What comes while a write is under way goes out in one, in its order.
func TestCoalesceWritesTogether(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := newSlowConn(t)
		g := newCoalescer(c)
		mustWrite(t, g, "a")
		synctest.Wait() // the writer has taken it
		var want strings.Builder
		for i := range 50 {
			text := fmt.Sprintf("%d,", i)
			mustWrite(t, g, text)
			want.WriteString(text)
		}
		c.pass <- struct{}{}
		c.pass <- struct{}{}
		synctest.Wait()
		if writes, _ := c.state(); len(writes) != 2 || writes[0] != "a" || writes[1] != want.String() {
			t.Errorf("got %q, want a alone and then all the others", writes)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What is enough waits for nobody: the writer that lets others run first is not needed for it.
func TestCoalesceDoesNotHoldBackWhatIsEnough(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := newSlowConn(t)
		close(c.pass)
		g := makeCoalescer(c)
		g.writers.Go(func() { g.write(g.hurry, 0) })
		for range coalesceEnough - 1 {
			mustWrite(t, g, "a")
		}
		synctest.Wait()
		if writes, _ := c.state(); len(writes) != 0 {
			t.Fatalf("%d bytes were written before there was enough", len(writes[0]))
		}
		mustWrite(t, g, "b")
		synctest.Wait()
		if writes, _ := c.state(); len(writes) != 1 || len(writes[0]) != coalesceEnough {
			t.Errorf("got %d writes, want one of %d bytes", len(writes), coalesceEnough)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Two writers keep the order of what was written, whoever takes it.
func TestCoalesceKeepsTheOrder(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		near, far := net.Pipe()
		g := newCoalescer(near)
		read := make(chan string, 1)
		go func() {
			b, _ := io.ReadAll(far) // until Close
			read <- string(b)
		}()
		var want strings.Builder
		for i := range 2000 {
			text := strings.Repeat(fmt.Sprintf("%d,", i), 1+i%40)
			mustWrite(t, g, text)
			want.WriteString(text)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if got := <-read; got != want.String() {
			t.Errorf("got %d bytes that differ from the %d written", len(got), want.Len())
		}
	})
}

func TestCoalesceClosesAfterWhatWasWritten(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := newSlowConn(t)
		g := newCoalescer(c)
		mustWrite(t, g, "a")
		synctest.Wait()
		mustWrite(t, g, "b")
		close(c.pass)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if writes, closed := c.state(); fmt.Sprint(writes) != "[a b]" || !closed {
			t.Errorf("got %q, closed %t, want a and b before the end", writes, closed)
		}
		if _, err := g.Write([]byte("c")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write after the end: got %v", err)
		}
		_ = g.Close() // again
	})
}

// A peer that reads nothing holds the end up for a second, and a write for a minute.
func TestCoalesceDoesNotWaitForAPeerThatReadsNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(*coalescer)
		want time.Duration
	}{
		"closed": {func(g *coalescer) { _ = g.Close() }, closeLimit},
		"open":   {func(g *coalescer) { g.writers.Wait() }, writeLimit},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				near, far := net.Pipe()
				defer far.Close()
				g := newCoalescer(near)
				began := time.Now()
				mustWrite(t, g, "a")
				synctest.Wait()
				tt.end(g)
				if got := time.Since(began); got != tt.want {
					t.Errorf("ended %v later, want %v", got, tt.want)
				}
				_ = g.Close()
			})
		})
	}
}

// The error of a write reaches who reads the connection, who writes next, and who waits for room.
func TestCoalesceTellsOfItsError(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := newSlowConn(t)
		c.fails = errors.New("the wire is cut")
		g := newCoalescer(c)
		mustWrite(t, g, "a")
		synctest.Wait()
		mustWrite(t, g, string(bytes.Repeat([]byte{'b'}, coalesceMost)))
		waits := make(chan error, 1)
		go func() {
			_, err := g.Write([]byte("c"))
			waits <- err
		}()
		synctest.Wait()
		select {
		case err := <-waits:
			t.Fatalf("a write beyond %d bytes did not wait: %v", coalesceMost, err)
		default:
		}
		close(c.pass)
		if err := <-waits; !errors.Is(err, c.fails) {
			t.Errorf("who waited: got %v", err)
		}
		if _, err := g.Write([]byte("d")); !errors.Is(err, c.fails) {
			t.Errorf("who writes next: got %v", err)
		}
		if _, closed := c.state(); !closed {
			t.Error("the connection is open still: its reader learns nothing")
		}
		_ = g.Close()
	})
}

// A writer never holds more than its bound and one write, and what waited for room goes out in its order.
func TestCoalesceIsBounded(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := newSlowConn(t)
		g := newCoalescer(c)
		mustWrite(t, g, "a")
		synctest.Wait()
		mustWrite(t, g, string(bytes.Repeat([]byte{'b'}, coalesceMost)))
		waited := make(chan error, 1)
		go func() {
			_, err := g.Write([]byte("c"))
			waited <- err
		}()
		synctest.Wait()
		c.pass <- struct{}{}
		if err := <-waited; err != nil {
			t.Fatal(err)
		}
		close(c.pass)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		writes, _ := c.state()
		if len(writes) != 3 || writes[0] != "a" || len(writes[1]) != coalesceMost || writes[2] != "c" {
			t.Errorf("got %d writes, want a, the large one and c", len(writes))
		}
	})
}

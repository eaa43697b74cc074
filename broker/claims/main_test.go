package claims_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/internal/virtual"
)

const (
	bucket = "drover-default-claims"
	key    = "partition.0"
	ttl    = 10 * time.Second
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// bubble runs fn in virtual time with a server that has a bucket for claims.
func bubble(t *testing.T, fn func(t *testing.T, s *embedded.Server)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) {
		s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
		makeBucket(t, embeddedtest.Connect(t, s))
		fn(t, s)
	})
}

func makeBucket(t *testing.T, conn *natsconn.Conn) {
	t.Helper()
	_, err := conn.JetStream().CreateKeyValue(t.Context(), jetstream.KeyValueConfig{
		Bucket: bucket, Storage: jetstream.MemoryStorage, LimitMarkerTTL: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// peer is one process that claims.
type peer struct {
	*claims.Claims
	conn *natsconn.Conn
	wire *wire
}

func join(t *testing.T, s *embedded.Server, o claims.Options) *peer {
	t.Helper()
	w := &wire{server: s.Conn()}
	p := &peer{wire: w, conn: embeddedtest.Through(t, w)}
	var err error
	if p.Claims, err = claims.Open(p.conn, bucket, o); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *peer) take(t *testing.T, key string) *claims.Lease {
	t.Helper()
	l, err := p.TryAcquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = l.Release(ctx) // some tests have cut the connection
	})
	return l
}

// kill ends the peer's connection, as the death of its process would.
func (p *peer) kill() { p.conn.Close() }

// wire is a connection that can be slow, or lose what the server says, or what the client says.
type wire struct {
	server nats.InProcessConnProvider
	delay  atomic.Int64 // of what the server says, in ns
	deaf   atomic.Bool  // what the server says is lost
	dumb   atomic.Bool  // what the client says is lost
	ahead  atomic.Bool  // what it reads was stored by a clock that is an hour ahead
}

func (w *wire) InProcessConn() (net.Conn, error) {
	c, err := w.server.InProcessConn()
	if err != nil {
		return nil, err
	}
	wc := &wireConn{Conn: c, wire: w, in: make(chan chunk, 1024), closed: make(chan struct{})}
	go wc.pump()
	return wc, nil
}

type chunk struct {
	data []byte
	at   time.Time
}

type wireConn struct {
	net.Conn
	wire   *wire
	in     chan chunk
	rest   []byte
	closed chan struct{}
	once   atomic.Bool
}

// pump takes what the server sends as soon as it does, so that a delay does not add up.
func (c *wireConn) pump() {
	defer close(c.in)
	for {
		b := make([]byte, 32<<10)
		n, err := c.Conn.Read(b)
		if err != nil {
			return
		}
		if c.wire.deaf.Load() {
			continue
		}
		if b = b[:n]; c.wire.ahead.Load() {
			for _, field := range []string{`Nats-Time-Stamp: `, `"time":"`} {
				b = bytes.ReplaceAll(b, []byte(field+"2000-01-01T00:"), []byte(field+"2000-01-01T01:"))
			}
		}
		select {
		case c.in <- chunk{b, time.Now()}:
		case <-c.closed:
			return
		}
	}
}

func (c *wireConn) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		ch, ok := <-c.in
		if !ok {
			return 0, io.EOF
		}
		select {
		case <-time.After(time.Until(ch.at.Add(time.Duration(c.wire.delay.Load())))):
		case <-c.closed:
			return 0, io.EOF
		}
		if !c.wire.deaf.Load() {
			c.rest = ch.data
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *wireConn) Write(b []byte) (int, error) {
	if c.wire.dumb.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *wireConn) Close() error {
	if c.once.CompareAndSwap(false, true) {
		close(c.closed)
	}
	return c.Conn.Close()
}

// ends waits until the lease has ended, and returns how long that took. It fails after limit.
func ends(t *testing.T, l *claims.Lease, limit time.Duration, want error) time.Duration {
	t.Helper()
	at := time.Now()
	select {
	case <-l.Done():
	case <-time.After(limit):
		t.Fatalf("the lease lives after %v", limit)
	}
	if l.Valid() || !errors.Is(l.Err(), want) {
		t.Fatalf("got valid %v, error %v, want %v", l.Valid(), l.Err(), want)
	}
	return time.Since(at)
}

package natsconn

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/internal/virtual"
)

// sluggish gives connections to a server that takes a while to greet.
type sluggish struct {
	nats.InProcessConnProvider
	greets atomic.Int64 // in ns
	last   net.Conn
}

func (s *sluggish) InProcessConn() (net.Conn, error) {
	c, err := s.InProcessConnProvider.InProcessConn()
	s.last = c
	return &greeted{Conn: c, after: time.Duration(s.greets.Load())}, err
}

type greeted struct {
	net.Conn
	once  sync.Once
	after time.Duration
}

func (g *greeted) Read(b []byte) (int, error) {
	g.once.Do(func() { time.Sleep(g.after) })
	return g.Conn.Read(b)
}

// The deadline of the context bounds the first connection. Those that follow may take as long as without it.
func TestDialDeadlineIsForTheFirstConnection(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		srv, stop := start(t, serverOptions(t))
		defer stop()
		from := &sluggish{InProcessConnProvider: srv}
		from.greets.Store(int64(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := Dial(ctx, Options{InProcess: from})
		wantErr(t, err, ErrNoConnection)
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Fatalf("got an answer after %v", took)
		}
		from.greets.Store(0)
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		c, err := Dial(ctx, Options{InProcess: from})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		again := make(chan struct{}, 1)
		c.OnReconnect(func() { again <- struct{}{} })
		from.greets.Store(int64(time.Second))
		_ = from.last.Close()
		select {
		case <-again:
		case <-time.After(30 * time.Second):
			t.Error("not connected again in 30 seconds")
			from.greets.Store(0)
			<-again // while it tries, the library holds a lock that Close waits for, and the clock stands still
		}
	})
}

package natsconn

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// program connects as a program does that knows nothing of Drover, with the user's permissions.
func program(t *testing.T, opts ...nats.Option) *nats.Conn {
	t.Helper()
	srv, stop := start(t, serverOptions(t))
	t.Cleanup(stop)
	nc, err := nats.Connect("", append(opts, nats.InProcessServer(srv))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func TestUse(t *testing.T) {
	nc := program(t)
	subscriptions := nc.NumSubscriptions()
	if Of(owner{nc}) != nil {
		t.Fatal("there is a Conn before anybody uses the connection")
	}
	c, release, err := Use(t.Context(), nc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	again, releaseAgain, err := Use(t.Context(), nc, Options{})
	if err != nil || again != c || Of(owner{nc}) != c || Of(c) != c {
		t.Fatalf("two users have two Conns: %v", err)
	}
	if _, _, err := Use(t.Context(), nc, Options{APIPrefix: "other.API"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("another API prefix: got %v, want ErrInvalid", err)
	}
	if _, err := c.Subscribe("echo", "", func(m Msg) { _ = m.Respond(nil, m.Data) }); err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		m, err := c.Request(t.Context(), "echo", nil, []byte("x"))
		if err == nil && string(m.Data) != "x" {
			t.Errorf("got %q", m.Data)
		}
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	release()
	release()
	if err := ask(); err != nil {
		t.Errorf("after one of two users: %v", err)
	}
	releaseAgain()
	if err := ask(); err == nil {
		t.Error("the last user has gone, and a request is answered")
	}
	if Of(owner{nc}) != nil || nc.IsClosed() || nc.NumSubscriptions() != subscriptions {
		t.Errorf("closed: %v; %d subscriptions are left, want %d", nc.IsClosed(), nc.NumSubscriptions(), subscriptions)
	}
}

// Whoever waits is told when the owner closes the connection, and the owner's handler is called too.
func TestUseUntilTheOwnerCloses(t *testing.T) {
	closed, told := make(chan struct{}), make(chan struct{})
	nc := program(t, nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	c, release, err := Use(t.Context(), nc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	c.OnClose(func() { close(told) })
	nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, ch := range []chan struct{}{closed, told} {
		select {
		case <-ch:
		case <-ctx.Done():
			t.Fatal("nobody was told")
		}
	}
	if _, err := c.Request(ctx, "echo", nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if _, _, err := Use(t.Context(), nc, Options{}); err == nil {
		t.Error("a closed connection was taken")
	}
}

type owner struct{ nc *nats.Conn }

func (o owner) NATS() *nats.Conn { return o.nc }

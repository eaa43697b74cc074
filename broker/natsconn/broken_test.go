package natsconn

import (
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// While the server is away nothing is sent, and nothing is sent later behind the caller's back.
func TestDisconnectedMeansNotSent(t *testing.T) {
	o := listening(t)
	srv, stop := start(t, o)
	c := dial(t, Options{URL: srv.ClientURL()})
	stream(t, c)
	b := outbox(t, c, OutboxOptions{})
	down := make(chan struct{})
	fell := sync.OnceFunc(func() { close(down) })
	c.NATS().SetDisconnectErrHandler(func(*nats.Conn, error) { fell() })
	up := make(chan struct{}, 1)
	defer c.OnReconnect(func() { up <- struct{}{} })()
	o.Port = port(srv)
	stop()
	receive(t, down)
	acks := make(chan Ack, 1)
	b.Send("s.a", nil, nil, func(a Ack) { acks <- a })
	wantErr(t, receive(t, acks).Err, ErrDisconnected)
	wantErr(t, c.Publish("s.a", nil, nil), ErrDisconnected)
	synced := make(chan error, 1)
	go func() {
		_, err := c.PublishSync(t.Context(), "s.b", nil, nil) // waits for the connection
		synced <- err
	}()
	_, stop = start(t, o)
	t.Cleanup(stop)
	receive(t, up)
	if err := receive(t, synced); err != nil {
		t.Fatal(err)
	}
	if last, err := c.StreamLastSeq(t.Context(), "S"); err != nil || last != 1 {
		t.Fatalf("got last %d, %v, want 1", last, err)
	}
	if s, err := c.GetSeq(t.Context(), "S", 1); err != nil || s.Subject != "s.b" {
		t.Fatalf("got %+v, %v, want s.b", s, err)
	}
}

// An acknowledgement that the break of the connection took is not waited for.
func TestOutboxGivesUpSoonAfterAReconnect(t *testing.T) {
	o := listening(t)
	srv, stop := start(t, o)
	t.Cleanup(stop)
	c := dial(t, Options{URL: srv.ClientURL()})
	other := dial(t, Options{URL: srv.ClientURL()})
	if _, err := other.Subscribe("silent.>", "", func(Msg) {}); err != nil {
		t.Fatal(err)
	}
	if err := other.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := outbox(t, c, OutboxOptions{Timeout: time.Hour})
	acks := make(chan Ack, 1)
	b.Send("silent.a", nil, nil, func(a Ack) { acks <- a })
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.NATS().ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, receive(t, acks).Err, ErrTimeout)
}

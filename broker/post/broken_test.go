package post

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
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

func TestPermissionViolationJoinsTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := serverOptions(t)
		o.Users = []*server.User{
			{Username: "root", Password: "p"},
			{Username: "narrow", Password: "p", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Allow: []string{"s.mine", "$JS.API.STREAM.INFO.S"}}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
			}},
		}
		srv, stop := start(t, o)
		defer stop()
		root := dial(t, Options{InProcess: srv, User: "root", Password: "p"})
		defer root.Close()
		stream(t, root)
		c := dial(t, Options{InProcess: srv, User: "narrow", Password: "p"})
		defer c.Close()
		put(t, c, "s.mine", "")
		b := outbox(t, c, OutboxOptions{})
		acks := make(chan Ack, 1)
		b.Send("s.other", nil, nil, func(a Ack) { acks <- a })
		wantErr(t, (<-acks).Err, ErrTimeout, ErrPermission)
		_, err := c.PublishSync(t.Context(), "s.other", nil, nil)
		wantErr(t, err, ErrTimeout, ErrPermission)
		_, err = c.Request(t.Context(), "api.x", nil, nil)
		wantErr(t, err, ErrTimeout, ErrPermission)
		_, err = c.LastBySubject(t.Context(), "S", "s.mine")
		wantErr(t, err, ErrTimeout, ErrPermission)
		if _, err := c.StreamLastSeq(t.Context(), "S"); err != nil {
			t.Fatal(err)
		}
		if last, err := root.StreamLastSeq(t.Context(), "S"); err != nil || last != 1 {
			t.Fatalf("got last %d, %v, want 1: a refused publish was stored", last, err)
		}
	})
}

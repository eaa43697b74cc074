package drover_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/schemas"
)

// A program that is connected to NATS gives its connection: clients share it, and it outlives them.
func TestConnectWithAConnectionOfTheProgram(t *testing.T) {
	srv := embeddedtest.Serve(t, embedded.Options{DontListen: true, SyncInterval: time.Hour})
	nc, err := nats.Connect("", nats.InProcessServer(srv.Conn()))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	before := nc.NumSubscriptions()
	s := &service{t: t, conn: embeddedtest.Connect(t, srv), asked: map[string][][]byte{}}
	on(s, "typeDescribe", func(int, schemas.TypeRequest) any {
		return schemas.TypeResponse{Type: &schemas.TypeInfo{V: 1, Name: "order"}}
	})
	if err := s.conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	connect := func() *drover.Client {
		c, err := drover.Connect(t.Context(), &drover.Options{Conn: nc})
		if err != nil {
			t.Fatal(err)
		}
		if c.NATS() != nc {
			t.Error("the client is on another connection")
		}
		return c
	}
	ask := func(c *drover.Client) {
		t.Helper()
		if got, err := c.DescribeType(t.Context(), schemas.WorkflowKind, "order", ""); err != nil || got.Name != "order" {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	first, second := connect(), connect()
	ask(first)
	ask(second)
	first.Close()
	first.Close() // does not count as the other's
	ask(second)
	second.Close()
	if nc.IsClosed() || nc.NumSubscriptions() != before {
		t.Errorf("the program's connection is closed: %v; %d subscriptions are left, want %d", nc.IsClosed(), nc.NumSubscriptions(), before)
	}
	third := connect()
	ask(third)
	third.Close()
	nc.Close()
	if _, err := drover.Connect(t.Context(), &drover.Options{Conn: nc}); err == nil {
		t.Error("a closed connection was taken")
	}
}

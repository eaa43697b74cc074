package nodes

import (
	"context"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

// The streams of the node's own NATS server go before its connections. Whoever looks in between looks again.
func TestDrainLooksWhileTheStreamsGo(t *testing.T) {
	s, err := server.New(server.Options{Embedded: embedded.Options{Port: -1}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	end := func() {
		t.Helper()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("got %v at the end, want nil", err)
		}
		close(ended)
	}
	t.Cleanup(func() {
		stop()
		<-ended
	})
	info, err := s.Ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := natsconn.Dial(t.Context(), natsconn.Options{URL: info.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	register, err := nodes.Open(conn, nodes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := register.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("got %+v, %v, want one node", list, err)
	}
	d := &target{op: "drain", name: info.Node, conn: conn, register: register, node: &list[0], own: true}
	if err := conn.JetStream().DeleteStream(t.Context(), "KV_"+subject.BucketNodes); err != nil {
		t.Fatal(err)
	}
	if gone, err := d.gone(t.Context(), schemas.Control{}); gone || err != nil {
		t.Fatalf("got %v, %v while the server is there, want neither its end nor an error", gone, err)
	}
	end()
	if err := d.awaitEnd(t.Context(), schemas.Control{}); err != nil {
		t.Fatalf("got %v after its end", err)
	}
}

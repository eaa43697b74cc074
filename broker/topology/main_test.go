package topology_test

import (
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/nats-io/nats.go/jetstream"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// bubble runs fn in virtual time.
func bubble(t *testing.T, fn func(*testing.T)) {
	t.Helper()
	virtual.Run(t, fn)
}

// dial starts a server for the length of the test and connects to it.
func dial(t *testing.T, o embedded.Options) *natsconn.Conn {
	t.Helper()
	o.DontListen = true
	s := embeddedtest.Serve(t, o)
	return embeddedtest.Connect(t, s)
}

func config(t *testing.T, conn *natsconn.Conn, stream string) jetstream.StreamConfig {
	t.Helper()
	s, err := conn.JetStream().Stream(t.Context(), stream)
	if err != nil {
		t.Fatalf("stream %s: %v", stream, err)
	}
	return s.CachedInfo().Config
}

func names(t *testing.T, conn *natsconn.Conn) []string {
	t.Helper()
	l := conn.JetStream().StreamNames(t.Context())
	var all []string
	for n := range l.Name() {
		all = append(all, n)
	}
	if l.Err() != nil {
		t.Fatal(l.Err())
	}
	return all
}

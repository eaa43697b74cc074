package dead_test

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
)

const ns = subject.Namespace("default")

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

func makeStream(t *testing.T, conn *natsconn.Conn) {
	t.Helper()
	_, err := conn.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{
		Name: ns.StreamDead(), Subjects: []string{ns.AllDead()}, Storage: jetstream.MemoryStorage,
	})
	if err != nil {
		t.Fatal(err)
	}
}

package embedded_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/internal/virtual"
)

// holdStore names the store that the child process of TestStoreOfAKilledProcess holds.
const holdStore = "DROVER_TEST_HOLD_STORE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdStore); dir != "" {
		os.Exit(hold(dir))
	}
	defer embedded.RegisterTicker()()
	m.Run()
}

// hold starts a server on dir, says so, and lives until it is killed or its stdin ends with its parent.
func hold(dir string) int {
	s, err := embedded.Start(context.Background(), embedded.Options{StoreDir: dir, DontListen: true})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("held", s.StoreID(), s.Boot())
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Shutdown()
	return 0
}

// start runs a server that does not listen, for the length of the test.
func start(t *testing.T, o embedded.Options) *embedded.Server {
	t.Helper()
	o.DontListen = true
	s, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

func connect(t *testing.T, s *embedded.Server) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(s.ClientURL(), nats.InProcessServer(s.Conn()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func makeStream(t *testing.T, s *embedded.Server, js jetstream.JetStream, name string) jetstream.Stream {
	t.Helper()
	storage := jetstream.FileStorage
	if s.Memory() {
		storage = jetstream.MemoryStorage
	}
	str, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}, Storage: storage})
	if err != nil {
		t.Fatal(err)
	}
	return str
}

// inBubble runs fn in virtual time with a server that ends inside the bubble.
func inBubble(t *testing.T, o embedded.Options, fn func(t *testing.T, s *embedded.Server)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) { fn(t, start(t, o)) })
}

package natsconn

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go/jetstream"
)

// The server keeps one process-wide ticker; it must be started outside every bubble.
func TestMain(m *testing.M) {
	ats.Register()
	defer ats.Unregister()
	m.Run()
}

// listening makes the server listen on a free port, which a restart must name again.
func listening(t testing.TB) *server.Options {
	t.Helper()
	o := serverOptions(t)
	o.DontListen, o.Host, o.Port = false, "127.0.0.1", -1
	return o
}

func port(srv *server.Server) int { return srv.Addr().(*net.TCPAddr).Port }

// serverOptions is a server without a socket; files in a folder of the test.
func serverOptions(t testing.TB) *server.Options {
	t.Helper()
	return &server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true}
}

// start runs a server and returns it with a function that stops it.
func start(t testing.TB, o *server.Options) (srv *server.Server, stop func()) {
	t.Helper()
	srv, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("server not ready")
	}
	return srv, func() {
		time.Sleep(time.Millisecond + 17*time.Nanosecond) // for the clocks of bubbles: see rest in package embedded
		srv.Shutdown()
		srv.WaitForShutdown()
	}
}

// connect gives an in-process connection to a new server; both end with the test or bubble.
func connect(t testing.TB) *Conn {
	t.Helper()
	srv, stop := start(t, serverOptions(t))
	t.Cleanup(stop)
	return dial(t, Options{InProcess: srv})
}

func dial(t testing.TB, o Options) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// stream makes a stream S for subjects s.>.
func stream(t testing.TB, c *Conn, change ...func(*jetstream.StreamConfig)) {
	t.Helper()
	cfg := jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, Storage: jetstream.FileStorage, AllowDirect: true}
	for _, f := range change {
		f(&cfg)
	}
	if _, err := c.JetStream().CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

// put publishes and waits.
func put(t testing.TB, c *Conn, subject, body string) uint64 {
	t.Helper()
	seq, err := c.PublishSync(t.Context(), subject, nil, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// fill publishes n messages to s.<i mod subjects>, 10,000 at a time: the server refuses more than 100,000 in its queue.
func fill(t testing.TB, c *Conn, n, subjects int) {
	t.Helper()
	b, err := c.NewOutbox(OutboxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const window = 10_000
	acks := make(chan Ack, window)
	for i := range n + min(n, window) {
		if i >= min(n, window) {
			if a := receive(t, acks); a.Err != nil {
				t.Fatal(a.Err)
			}
		}
		if i < n {
			b.Send(fmt.Sprintf("s.%d", i%subjects), nil, fmt.Appendf(nil, "%d", i), func(a Ack) { acks <- a })
		}
	}
}

// receive waits for a value, for at most 30 seconds.
func receive[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came in 30 seconds")
		panic("unreachable")
	}
}

func wantErr(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Fatalf("got error %v, want %v", err, w)
		}
	}
}

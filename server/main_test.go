package server

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// served is a server that runs.
type served struct {
	Info   // once it is ready
	server *Server
	stop   context.CancelFunc
	ended  chan struct{}
	err    error // after ended
}

// serving starts a server and waits until it is ready. The test stops it at the latest.
func serving(t *testing.T, o Options) *served {
	t.Helper()
	s := beginning(t, o)
	var err error
	if s.Info, err = s.server.Ready(t.Context()); err != nil {
		t.Fatalf("the server did not begin: %v", err)
	}
	return s
}

// beginning starts a server that may wait for something before it is ready.
func beginning(t *testing.T, o Options) *served {
	t.Helper()
	if o.Logger == nil {
		log := logrus.New()
		log.SetOutput(testWriter{t})
		log.SetLevel(logrus.WarnLevel)
		o.Logger = log
	}
	server, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	s := &served{server: server, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.err = server.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-s.ended })
	return s
}

func (s *served) end(t *testing.T) {
	t.Helper()
	s.stop()
	if <-s.ended; s.err != nil {
		t.Fatalf("got %v at the end, want nil", s.err)
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Helper()
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// listening is a logger whose warnings and errors are kept.
func listening() (*logrus.Logger, *logtest.Hook) {
	log, kept := logtest.NewNullLogger()
	log.SetLevel(logrus.WarnLevel)
	return log, kept
}

func logged(kept *logtest.Hook, level logrus.Level, text string) bool {
	return slices.ContainsFunc(kept.AllEntries(), func(e *logrus.Entry) bool { return e.Level == level && strings.Contains(e.Message, text) })
}

// bare is a NATS server that knows nothing of Drover, and options for nodes beside it.
func bare(t *testing.T) (url string, o Options) {
	t.Helper()
	nats := embeddedtest.Serve(t, embedded.Options{Port: -1})
	return nats.ClientURL(), Options{External: &natsconn.Options{URL: nats.ClientURL()}, Partitions: 2}
}

// dialed is a connection of the test's own.
func dialed(t *testing.T, url string) *natsconn.Conn {
	t.Helper()
	conn, err := natsconn.Dial(t.Context(), natsconn.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func registry(t *testing.T, conn *natsconn.Conn) *nodes.Registry {
	t.Helper()
	r, err := nodes.Open(conn, nodes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// died leaves the record of a node that ended without a word a moment ago.
func died(t *testing.T, url, name string) {
	t.Helper()
	conn := dialed(t, url)
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	m, err := registry(t, conn).Join(t.Context(), schemas.NodeRecord{Node: name, PID: 4711, Boot: "earlier", Namespace: "default"}, nodes.JoinOptions{Given: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Set(t.Context(), schemas.NodeReady); err != nil {
		t.Fatal(err)
	}
	m.Close()
}

func statusOf(t *testing.T, r *nodes.Registry, name string) schemas.NodeStatus {
	t.Helper()
	list, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if i.Node == name {
			return i.Status
		}
	}
	return ""
}

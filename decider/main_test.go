package decider_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// ns is the namespace of all tests.
const ns = subject.Namespace("default")

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// house is a server, and the broker's connection to it: the tests play the broker by hand.
type house struct {
	t      *testing.T
	server *embedded.Server
	broker *natsconn.Conn

	mu        sync.Mutex
	announced map[string]int
	left      []string      // "type worker"
	changed   chan struct{} // closed at the next announcement
	hooks     map[string]func()
	replies   chan natsconn.Msg
}

// inBubble runs fn in virtual time.
func inBubble(t *testing.T, fn func(t *testing.T, h *house)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) { fn(t, open(t)) })
}

// inReconnectingBubble is inBubble for tests in which the client library reconnects.
func inReconnectingBubble(t *testing.T, fn func(t *testing.T, h *house)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) { fn(t, open(t)) })
}

func open(t *testing.T) *house {
	t.Helper()
	server := embeddedtest.Serve(t, embedded.Options{DontListen: true})
	h := &house{t: t, server: server, announced: make(map[string]int), hooks: make(map[string]func()), changed: make(chan struct{}), replies: make(chan natsconn.Msg, 1000)}
	h.broker = h.dial()
	h.subscribe(h.broker, ns.Announce("*"), func(m natsconn.Msg) {
		var a schemas.Announcement
		if err := schemas.Unmarshal(m.Data, &a); err != nil {
			t.Errorf("announcement %q: %v", m.Data, err)
		}
		if m.Subject != ns.Announce(a.Type) {
			t.Errorf("announcement of %q came on %s", a.Type, m.Subject)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if a.Left != "" {
			h.left = append(h.left, a.Type+" "+a.Left)
			return
		}
		h.announced[a.Type]++
		close(h.changed)
		h.changed = make(chan struct{})
		if hook := h.hooks[a.Type]; hook != nil {
			delete(h.hooks, a.Type)
			go hook()
		}
	})
	h.subscribe(h.broker, "replies.>", func(m natsconn.Msg) { h.replies <- m })
	h.flush(h.broker)
	return h
}

func (h *house) dial() *natsconn.Conn {
	h.t.Helper()
	return h.dialThrough(h.server.Conn())
}

func (h *house) dialThrough(p provider) *natsconn.Conn {
	h.t.Helper()
	return embeddedtest.Through(h.t, p)
}

// subscribe cannot ask for "*" through the builders, which would escape it.
func (h *house) subscribe(c *natsconn.Conn, subj string, fn func(natsconn.Msg)) {
	h.t.Helper()
	if subj == ns.Announce("*") {
		subj = string("drover." + ns + ".announce.*")
	}
	if _, err := c.Subscribe(subj, "", fn); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) flush(c *natsconn.Conn) {
	h.t.Helper()
	if err := c.Flush(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) announcements(typ string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.announced[typ]
}

// farewells are the workers that have said that they go, each after its type.
func (h *house) farewells() []string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.left)
}

// onAnnouncement calls fn at the next announcement of a type.
func (h *house) onAnnouncement(typ string, fn func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hooks[typ] = fn
}

// provider gives connections that use no socket.
type provider interface{ InProcessConn() (net.Conn, error) }

// gate is a server that can be out of reach.
type gate struct {
	provider
	shut atomic.Bool
}

func (g *gate) InProcessConn() (net.Conn, error) {
	if g.shut.Load() {
		return nil, errors.New("the gate is shut")
	}
	return g.provider.InProcessConn()
}

// running is a worker that runs.
type running struct {
	conn *natsconn.Conn
	stop context.CancelFunc
	done chan error
}

// run starts a worker for one type, and returns when it has announced itself. It must have stopped by the end of the test.
func (h *house) run(o *decider.Options, typ string, d decider.Func) *running {
	h.t.Helper()
	conn := h.dial()
	w := decider.New(conn, o)
	w.Register(typ, d)
	return h.runWorker(conn, w)
}

func (h *house) runWorker(conn *natsconn.Conn, w *decider.Worker) *running {
	h.t.Helper()
	before := h.announcements(w.Types()[0])
	ctx, cancel := context.WithCancel(h.t.Context())
	r := &running{conn: conn, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- w.Run(ctx) }()
	h.announcement(w.Types()[0], before+1)
	h.t.Cleanup(func() { cancel(); r.wait(h.t) })
	return r
}

// wait returns what Run returned.
func (r *running) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.done:
		r.done <- err
		return err
	case <-time.After(time.Minute):
		t.Fatal("Run did not return within a minute")
		return nil
	}
}

// announcement waits until a type has been announced n times.
func (h *house) announcement(typ string, n int) {
	h.t.Helper()
	for {
		h.mu.Lock()
		got, changed := h.announced[typ], h.changed
		h.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			h.t.Fatalf("%d announcements of %q within a minute, want %d", got, typ, n)
		}
	}
}

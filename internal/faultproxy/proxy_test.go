package faultproxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/faultproxy"
)

// patience bounds what must come; brief is how long what must not come is waited for.
const (
	patience = 30 * time.Second
	brief    = 300 * time.Millisecond
)

// bed is a server with a stream T on t.>, and a connection to it through a proxy.
type bed struct {
	t            *testing.T
	proxy        *faultproxy.Proxy
	conn, direct *natsconn.Conn
}

func newBed(t *testing.T) *bed {
	t.Helper()
	s := embeddedtest.Serve(t, embedded.Options{Port: -1})
	p, err := faultproxy.New(strings.TrimPrefix(s.ClientURL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bed{t: t, proxy: p, conn: dial(t, p.Addr()), direct: dial(t, s.ClientURL())}
	m, err := b.direct.Request(t.Context(), "$JS.API.STREAM.CREATE.T", nil, []byte(`{"name":"T","subjects":["t.>"],"storage":"memory"}`))
	if err != nil || strings.Contains(string(m.Data), `"error"`) {
		t.Fatalf("create stream: %s %v", m.Data, err)
	}
	return b
}

func dial(t *testing.T, addr string) *natsconn.Conn {
	t.Helper()
	c, err := natsconn.Dial(t.Context(), natsconn.Options{URL: addr, RequestTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// publish tries once.
func (b *bed) publish(limit time.Duration, subject string) error {
	ctx, cancel := context.WithTimeout(b.t.Context(), limit)
	defer cancel()
	_, err := b.conn.PublishSync(ctx, subject, nil, []byte(subject))
	return err
}

func (b *bed) mustPublish(subject string) {
	b.t.Helper()
	if err := b.publish(patience, subject); err != nil {
		b.t.Fatalf("publish %s: %v", subject, err)
	}
}

// again publishes until it is acknowledged, over a connection that may be about to end. The subject may be stored more than
// once.
func (b *bed) again(subject string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	for err := b.publish(patience, subject); err != nil; err = b.publish(patience, subject) {
		if ctx.Err() != nil {
			b.t.Fatalf("publish %s: %v", subject, err)
		}
	}
}

func (b *bed) mustTimeOut(subject string) {
	b.t.Helper()
	if err := b.publish(brief, subject); !errors.Is(err, natsconn.ErrTimeout) {
		b.t.Fatalf("publish %s: got %v, want a timeout", subject, err)
	}
}

// stored is what the stream holds, in order.
func (b *bed) stored() []string {
	b.t.Helper()
	var all []string
	err := b.direct.Scan(b.t.Context(), "T", natsconn.ReadOptions{}, func(m natsconn.Stored) error {
		all = append(all, m.Subject)
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// awaitStored waits until the stream holds so many messages.
func (b *bed) awaitStored(n int) []string {
	b.t.Helper()
	more := make(chan struct{}, 100)
	r, err := b.direct.Read(b.t.Context(), "T", natsconn.ReadOptions{}, func(natsconn.Stored) { more <- struct{}{} })
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Close()
	for range n {
		select {
		case <-more:
		case <-time.After(patience):
			b.t.Fatalf("got %v, want %d messages", b.stored(), n)
		}
	}
	return b.stored()
}

// holds compares what is stored; repeats of a subject in a row count as one.
func (b *bed) holds(want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, slices.Compact(b.stored())); diff != "" {
		b.t.Fatalf("stored (-want +got):\n%s", diff)
	}
}

func only(subject string) func(string) bool { return func(s string) bool { return s == subject } }

func TestPasses(t *testing.T) {
	b := newBed(t)
	want := []string{}
	for range 50 {
		b.mustPublish("t.a")
		want = append(want, "t.a")
	}
	large := strings.Repeat("x", 900<<10)
	if _, err := b.conn.PublishSync(t.Context(), "t.large", natsconn.Header{"A": {"b"}}, []byte(large)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(want, "t.large"), b.stored()); diff != "" {
		t.Fatalf("stored (-want +got):\n%s", diff)
	}
	m, err := b.conn.GetSeq(t.Context(), "T", 51)
	if err != nil || string(m.Data) != large || m.Header.Get("A") != "b" {
		t.Fatalf("got %d bytes, header %v and %v, want what was published", len(m.Data), m.Header, err)
	}
	if c := b.proxy.Counts(); c.Connections != 1 || c.Cuts+c.BytesVanished+c.RepliesDropped+c.Duplicated+c.Postponed != 0 {
		t.Fatalf("got %+v, want one connection and no fault", c)
	}
}

func TestCutAndHeal(t *testing.T) {
	b := newBed(t)
	b.mustPublish("t.a")
	b.proxy.Cut()
	if err := b.publish(brief, "t.b"); err == nil {
		t.Fatal("got an acknowledgement through a cut")
	}
	// Whoever connects meanwhile is closed without a byte.
	c, err := net.Dial("tcp", b.proxy.Addr())
	if err == nil {
		defer c.Close()
		if got, _ := io.ReadAll(c); len(got) != 0 {
			t.Fatalf("got %q through a cut, want nothing", got)
		}
	}
	b.proxy.Heal()
	b.again("t.c")
	if got := b.stored(); !slices.Contains(got, "t.a") || got[len(got)-1] != "t.c" {
		t.Fatalf("got %v, want t.a first and t.c last", got)
	}
}

func TestBreak(t *testing.T) {
	b := newBed(t)
	b.mustPublish("t.a")
	b.proxy.Break()
	b.again("t.b")
	b.holds("t.a", "t.b")
	if c := b.proxy.Counts(); c.Connections != 2 || c.Cuts != 1 {
		t.Fatalf("got %+v, want a second connection after one cut", c)
	}
}

func TestHalfOpen(t *testing.T) {
	for _, tt := range []struct {
		name      string
		direction faultproxy.Direction
		want      []string // what of t.a, t.b, t.c is stored, t.b while the link is half open
	}{
		{"to the server: nothing happens", faultproxy.ToServer, []string{"t.a", "t.c"}},
		{"to the client: it happens and nobody says so", faultproxy.ToClient, []string{"t.a", "t.b", "t.c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(t)
			b.mustPublish("t.a")
			b.proxy.HalfOpen(tt.direction)
			b.mustTimeOut("t.b")
			if !b.conn.Connected() {
				t.Error("the connection has ended, want it half open")
			}
			b.proxy.Heal() // the connection has a hole and is closed
			b.again("t.c")
			b.holds(tt.want...)
			if c := b.proxy.Counts(); c.BytesVanished == 0 || c.Connections != 2 {
				t.Fatalf("got %+v, want bytes that vanished and a second connection", c)
			}
		})
	}
}

func TestStall(t *testing.T) {
	b := newBed(t)
	b.mustPublish("t.a")
	b.proxy.Stall(faultproxy.ToServer)
	b.mustTimeOut("t.late")
	b.holds("t.a")
	b.proxy.Heal()
	b.mustPublish("t.c")
	b.holds("t.a", "t.late", "t.c")
	if c := b.proxy.Counts(); c.Connections != 1 || c.BytesVanished != 0 {
		t.Fatalf("got %+v, want the connection to go on without a hole", c)
	}
}

func TestDelay(t *testing.T) {
	b := newBed(t)
	const d = 40 * time.Millisecond
	b.proxy.Delay(d, 10*time.Millisecond)
	began := time.Now()
	for _, s := range []string{"t.1", "t.2", "t.3"} {
		b.mustPublish(s)
	}
	if took := time.Since(began); took < 3*2*d {
		t.Errorf("three round trips took %v, want at least %v", took, 3*2*d)
	}
	b.proxy.Heal()
	b.mustPublish("t.4")
	b.holds("t.1", "t.2", "t.3", "t.4")
}

// A publish is executed and its caller sees a timeout.
func TestDropReplies(t *testing.T) {
	b := newBed(t)
	b.proxy.DropReplies(only("t.b"))
	b.mustPublish("t.a")
	b.mustTimeOut("t.b")
	b.mustPublish("t.c")
	b.proxy.DropReplies(nil)
	b.mustPublish("t.b")
	b.holds("t.a", "t.b", "t.c", "t.b")
	if c := b.proxy.Counts(); c.RepliesDropped != 1 || c.Connections != 1 {
		t.Fatalf("got %+v, want one lost answer on one connection", c)
	}
}

func TestDuplicate(t *testing.T) {
	b := newBed(t)
	b.proxy.Duplicate(only("t.b"), 0)
	for _, s := range []string{"t.a", "t.b", "t.c"} {
		b.mustPublish(s)
	}
	if diff := cmp.Diff([]string{"t.a", "t.b", "t.b", "t.c"}, b.stored()); diff != "" {
		t.Fatalf("stored (-want +got):\n%s", diff)
	}
	b.proxy.Duplicate(only("t.d"), brief/3)
	b.mustPublish("t.d")
	b.mustPublish("t.e")
	if diff := cmp.Diff([]string{"t.a", "t.b", "t.b", "t.c", "t.d", "t.e", "t.d"}, b.awaitStored(7)); diff != "" {
		t.Fatalf("stored (-want +got):\n%s", diff)
	}
	if c := b.proxy.Counts(); c.Duplicated != 2 {
		t.Fatalf("got %+v, want two copies", c)
	}
}

func TestPostpone(t *testing.T) {
	b := newBed(t)
	b.proxy.Postpone(only("t.a"), brief)
	late := make(chan error, 1)
	go func() { late <- b.publish(patience, "t.a") }()
	for b.proxy.Counts().Postponed == 0 {
		b.mustPublish("t.b")
	}
	b.mustPublish("t.c")
	if err := <-late; err != nil {
		t.Fatalf("the late message: %v", err)
	}
	got := b.stored()
	if a, c := slices.Index(got, "t.a"), slices.Index(got, "t.c"); a < c {
		t.Fatalf("got %v, want t.a after t.c", got)
	}
}

func TestNew(t *testing.T) {
	if _, err := faultproxy.New("nowhere"); err == nil {
		t.Fatal("got no error for a target without a port")
	}
	// A target that is not there.
	p, err := faultproxy.New("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, _ := io.ReadAll(c); len(got) != 0 {
		t.Fatalf("got %q from nobody", got)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", p.Addr()); err == nil {
		c.Close()
		t.Fatal("got a connection to a closed proxy")
	}
}

package post_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/internal/cutwire"
)

// What was published before Close arrives, though the server is sending to the connection when it is closed.
func TestCloseLosesNothing(t *testing.T) {
	const rounds, each = 100, 50
	srv, err := embedded.Start(t.Context(), embedded.Options{Port: -1, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Shutdown)
	dial := func() *post.Conn {
		c, err := post.Dial(t.Context(), post.Options{URL: srv.ClientURL()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	subscribe := func(c *post.Conn, subject string, fn func(post.Msg)) {
		if _, err := c.Subscribe(subject, "", fn); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(c *post.Conn, subject string, size int) {
		if err := c.Publish(subject, nil, make([]byte, size)); err != nil {
			t.Error(err)
		}
	}
	hears, floods := dial(), dial()
	defer hears.Close()
	var heard atomic.Int64
	all := make(chan struct{})
	subscribe(hears, "last.words", func(post.Msg) {
		if heard.Add(1) == rounds*each {
			close(all)
		}
	})
	enough, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-enough:
				floods.Close()
				return
			default:
				publish(floods, "flood", 2000)
			}
		}
	}()
	for range rounds {
		c := dial()
		subscribe(c, "flood", func(post.Msg) {})
		for range each {
			publish(c, "last.words", 1000)
		}
		c.Close()
	}
	close(enough)
	<-over
	select {
	case <-all:
	case <-time.After(10 * time.Second):
		t.Fatalf("%d of %d messages came", heard.Load(), rounds*each)
	}
}

// A server that does not answer is waited for only a moment.
func TestCloseOfACutConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := embedded.Start(t.Context(), embedded.Options{DontListen: true, SyncInterval: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Shutdown()
		for name, c := range map[string]struct {
			cut  func(*cutwire.Wire)
			most time.Duration
		}{
			"nothing comes back": {func(w *cutwire.Wire) { w.Lag(10 * time.Second) }, time.Second},
			"it is lost":         {(*cutwire.Wire).Kill, 0},
		} {
			wire := cutwire.New(srv.Conn())
			conn, err := post.Dial(t.Context(), post.Options{InProcess: wire})
			if err != nil {
				t.Fatal(err)
			}
			c.cut(wire)
			synctest.Wait()
			began := time.Now()
			conn.Close()
			if took := time.Since(began); took > c.most {
				t.Errorf("%s: took %v, want at most %v", name, took, c.most)
			}
			time.Sleep(time.Minute) // whoever reads late finds the end
		}
	})
}

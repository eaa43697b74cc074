package natsconn

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/internal/cutwire"

	"github.com/droverhq/drover/internal/virtual"
)

// What was published before Close arrives, though the server is sending to the connection when it is closed.
func TestCloseLosesNothing(t *testing.T) {
	const rounds, each = 100, 50
	srv, stop := start(t, listening(t))
	t.Cleanup(stop)
	listen := func(c *Conn, subject string, fn func(Msg)) {
		if _, err := c.Subscribe(subject, "", fn); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(c *Conn, subject string, size int) {
		if err := c.Publish(subject, nil, make([]byte, size)); err != nil {
			t.Error(err)
		}
	}
	o := Options{URL: srv.ClientURL()}
	hears, floods := dial(t, o), dial(t, o)
	var heard atomic.Int64
	all := make(chan struct{})
	listen(hears, "last.words", func(Msg) {
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
				return
			default:
			}
			for range 100 {
				publish(floods, "flood", 2000)
			}
			if err := floods.Flush(context.Background()); err != nil { // or it would take a core for itself
				t.Error(err)
				return
			}
		}
	}()
	for range rounds {
		c := dial(t, o)
		listen(c, "flood", func(Msg) {})
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
	for name, c := range map[string]struct {
		cut  func(*cutwire.Wire)
		most time.Duration
	}{
		"nothing comes back": {func(w *cutwire.Wire) { w.Lag(10 * time.Second) }, time.Second},
		"it is lost":         {(*cutwire.Wire).Kill, 0},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				srv, stop := start(t, serverOptions(t))
				t.Cleanup(stop)
				wire := cutwire.New(srv)
				conn := dial(t, Options{InProcess: wire})
				c.cut(wire)
				synctest.Wait()
				began := time.Now()
				conn.Close()
				if took := time.Since(began); took > c.most {
					t.Errorf("took %v, want at most %v", took, c.most)
				}
				time.Sleep(time.Minute) // whoever reads late finds the end
			})
		})
	}
}

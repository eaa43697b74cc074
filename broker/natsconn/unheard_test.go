package natsconn

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/droverhq/drover/internal/virtual"
)

// A connection is at home as long as it lives, and others see that it is gone in the moment when the server sees it.
func TestUnheard(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		srv, stop := start(t, serverOptions(t))
		t.Cleanup(stop)
		a, b, c := dial(t, Options{InProcess: srv}), dial(t, Options{InProcess: srv}), dial(t, Options{InProcess: srv})
		unheard := func(subjects ...string) []string {
			t.Helper()
			began := time.Now()
			got, err := a.Unheard(t.Context(), subjects)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 0 {
				t.Errorf("it took %v", took)
			}
			return got
		}
		if got := unheard(b.Home(), c.Home(), a.Home()); len(got) != 0 {
			t.Errorf("nobody listens on %q", got)
		}
		if got := unheard(); len(got) != 0 {
			t.Errorf("got %q of none", got)
		}
		b.Close()
		synctest.Wait() // the server has seen it
		if got := unheard(b.Home(), c.Home(), "other"); !slices.Equal(got, []string{b.Home(), "other"}) {
			t.Errorf("got %q, want %q and another", got, b.Home())
		}
		a.Close()
		_, err := a.Unheard(t.Context(), []string{c.Home()})
		wantErr(t, err, ErrClosed)
	})
}

func TestUnheardIsRefused(t *testing.T) {
	o := serverOptions(t)
	o.Users = []*server.User{
		{Username: "all", Password: "p"},
		{Username: "few", Password: "p", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"_INBOX.*.at-home"}}}},
	}
	srv, stop := start(t, o)
	t.Cleanup(stop)
	few, all := dial(t, Options{InProcess: srv, User: "few", Password: "p"}), dial(t, Options{InProcess: srv, User: "all", Password: "p"})
	for try := 0; ; try++ { // the server says so, of no call in particular
		got, err := few.Unheard(t.Context(), []string{all.Home()})
		if err != nil {
			wantErr(t, err, ErrPermission)
			return
		}
		if len(got) > 0 || try == 1000 {
			t.Fatalf("try %d: got %q, want that it is refused", try, got)
		}
	}
}

// Whoever sees the same number of dials has the same connection, or none.
func TestDials(t *testing.T) {
	o := listening(t)
	srv, stop := start(t, o)
	o.Port = port(srv)
	c := dial(t, Options{URL: srv.ClientURL()})
	first := c.Dials()
	if first == 0 || c.Dials() != first {
		t.Fatalf("got %d, then %d", first, c.Dials())
	}
	up := c.reconnected()
	stop()
	_, stop = start(t, o)
	t.Cleanup(stop)
	<-up
	second := c.Dials()
	if second == first {
		t.Error("the connection is another one, and has the number of the first")
	}
	c.Close()
	if c.Dials() == second {
		t.Error("a connection that was closed has its number still")
	}
}

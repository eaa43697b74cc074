package natsconn

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/internal/poll"
)

// Who may come before the server waits for it, says so, and is told at once what the server says.
func TestDialRetriesOnFailedConnect(t *testing.T) {
	o := listening(t)
	o.JetStream = false
	o.Users = []*server.User{{Username: "known", Password: "p"}}
	srv, stop := start(t, o)
	at, url := port(srv), srv.ClientURL()
	stop()

	log, kept := logtest.NewNullLogger()
	type dialed struct {
		c   *Conn
		err error
	}
	dials := func(ctx context.Context) <-chan dialed {
		done := make(chan dialed, 1)
		go func() {
			c, err := Dial(ctx, Options{URL: url, User: "known", Password: "p", RetryOnFailedConnect: true, Logger: log})
			done <- dialed{c, err}
		}()
		return done
	}
	told := func(n int) func() bool {
		return func() bool {
			seen := 0
			for _, e := range kept.AllEntries() {
				if e.Level == logrus.WarnLevel && strings.Contains(e.Message, "no connection to NATS yet") {
					seen++
				}
			}
			return seen >= n
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := dials(ctx)
	poll.Until(t, 30*time.Second, "the log says that nobody is there", told(1))
	cancel()
	if got := <-first; got.err == nil {
		t.Fatal("got a connection to nobody")
	} else {
		wantErr(t, got.err, ErrNoConnection)
	}

	second := dials(t.Context())
	poll.Until(t, 30*time.Second, "the log says so again", told(2))
	o.Port = at
	_, stop = start(t, o)
	t.Cleanup(stop)
	got := <-second
	if got.err != nil {
		t.Fatal(got.err)
	}
	t.Cleanup(got.c.Close)
	if err := got.c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	_, err := Dial(t.Context(), Options{URL: url, User: "unknown", Password: "p", RetryOnFailedConnect: true})
	wantErr(t, err, ErrNoConnection)
	if !strings.Contains(err.Error(), "refuses these credentials") {
		t.Errorf("got %v, want what the server says", err)
	}
}

package natsconn

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/internal/freeport"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/internal/sleep"
)

// cluster runs three servers and waits until they agree on a leader.
func cluster(t *testing.T) []*server.Server {
	t.Helper()
	var all []*server.Server
	for len(all) == 0 { // a port may be somebody else's by the time that its server listens
		ports, err := freeport.Several(3)
		if err != nil {
			t.Fatal(err)
		}
		all = startCluster(t, ports)
	}
	poll.Until(t, time.Minute, "a leader with three peers", func() bool {
		for _, s := range all {
			if s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == 3 {
				return true
			}
		}
		return false
	})
	return all
}

// startCluster returns nothing if a server cannot listen.
func startCluster(t *testing.T, ports []int) (all []*server.Server) {
	t.Helper()
	var routes []*url.URL
	for _, p := range ports {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", p)})
	}
	for i, p := range ports {
		o := listening(t)
		o.ServerName = fmt.Sprint("n", i)
		o.Cluster = server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: p}
		o.Routes = routes
		srv, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		srv.Start()
		t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
		if !srv.ReadyForConnections(10 * time.Second) {
			t.Logf("server %d does not listen on port %d; trying others", i, p)
			for _, s := range append(all, srv) {
				s.Shutdown()
			}
			return nil
		}
		all = append(all, srv)
	}
	return all
}

// On a replicated stream the leader steps down again and again, and the server that the client uses stops; the
// reader misses and repeats nothing, and every write ends stored once.
func TestReaderSurvivesLeaderChanges(t *testing.T) {
	servers := cluster(t)
	urls := []string{}
	for _, s := range servers {
		urls = append(urls, s.ClientURL())
	}
	c := dial(t, Options{URL: strings.Join(urls, ",")})
	stream(t, c, func(cfg *jetstream.StreamConfig) { cfg.Replicas = 3 })
	const n = 600
	_, ch := read(t, c, ReadOptions{})
	write := func(i int) error {
		for began := time.Now(); ; {
			h := Header{}
			ExpectLastSeq(h, uint64(i))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // without a leader nobody answers
			_, err := c.PublishSync(ctx, "s.a", h, fmt.Append(nil, i))
			cancel()
			if e, ok := errors.AsType[*SequenceError](err); err == nil || (ok && e.Last == uint64(i+1)) {
				return nil // stored now, or by an attempt whose answer was lost
			}
			if time.Since(began) > time.Minute {
				return err
			}
			sleep.For(t.Context(), 20*time.Millisecond) // an election needs the processor more than this loop
		}
	}
	for i := range n {
		if err := write(i); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		switch {
		case i%150 == 75:
			for _, s := range servers {
				if s.JetStreamIsStreamLeader("$G", "S") {
					if err := s.JetStreamStepdownStream("$G", "S"); err != nil {
						t.Fatal(err)
					}
				}
			}
		case i == n/2:
			name := c.NATS().ConnectedServerName()
			for _, s := range servers {
				if s.Name() == name {
					s.Shutdown()
				}
			}
		}
	}
	for want := uint64(1); want <= n; want++ {
		if s := receive(t, ch); s.Seq != want || string(s.Data) != fmt.Sprint(want-1) {
			t.Fatalf("got %d %q, want %d", s.Seq, s.Data, want)
		}
	}
	if len(ch) > 0 {
		t.Fatalf("got %+v after the end", <-ch)
	}
}

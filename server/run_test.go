package server

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
)

// A broker that cannot begin where the NATS server takes too small messages ends the server: it was never ready.
func TestServeIsNotReadyWithoutABroker(t *testing.T) {
	o := Options{External: &natsconn.Options{URL: embeddedtest.StartSmall(t, 64<<10)}}
	for _, alone := range []bool{false, true} {
		o.OnlyNamespace = alone
		s := beginning(t, o)
		info, err := s.server.Ready(t.Context())
		if !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "max_payload is 65536") {
			t.Fatalf("only its namespace %t: got %+v, %v, want the limit", alone, info, err)
		}
	}
}

// stubborn is a role that does as it is told, or not.
type stubborn struct {
	run func(context.Context) error
}

func (s stubborn) Run(ctx context.Context) error { return s.run(ctx) }

func TestNodeEndsWithItsRoles(t *testing.T) {
	boom := errors.New("boom")
	obey := func(ctx context.Context) error { <-ctx.Done(); return nil }
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	hang := func(context.Context) error { <-never; return nil }
	hurry := make(chan struct{})
	close(hurry)
	for _, tt := range []struct {
		name  string
		roles map[string]runner
		stop  bool
		hurry chan struct{}
		drain time.Duration
		want  error
	}{
		{"clean stop", map[string]runner{"a": stubborn{obey}, "b": stubborn{obey}}, true, nil, 0, nil},
		{"a role fails", map[string]runner{"a": stubborn{obey}, "b": stubborn{func(context.Context) error { return boom }}}, false, nil, 0, boom},
		{"a role ends", map[string]runner{"a": stubborn{obey}, "b": stubborn{func(context.Context) error { return nil }}}, false, nil, 0, errRoleEnded},
		{"cut short", map[string]runner{"a": stubborn{hang}}, true, hurry, 0, ErrCutShort},
		{"S2-1 what runs takes too long", map[string]runner{"a": stubborn{hang}, "b": stubborn{obey}}, true, nil, 50 * time.Millisecond, errSlowStop},
		{"a role fails and another hangs", map[string]runner{"a": stubborn{hang}, "b": stubborn{func(context.Context) error { return boom }}}, false, nil, 50 * time.Millisecond, boom},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := logrus.New()
			log.SetOutput(io.Discard)
			parent, cancel := context.WithCancel(t.Context())
			n, ctx := newNode(parent, Options{Hurry: tt.hurry, Logger: log, DrainTimeout: tt.drain})
			defer cancel()
			if tt.stop {
				cancel()
			}
			if err := n.supervise(ctx, tt.roles); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// Nodes that start in the same moment beside one NATS get names of their own; one that was given a name keeps it.
func TestNodesHaveTheirOwnNames(t *testing.T) {
	nats := embeddedtest.Serve(t, embedded.Options{DontListen: true})
	o := Options{External: &natsconn.Options{InProcess: nats.Conn()}, Roles: []string{RoleTimers}, Partitions: 1}
	names := make(chan string, 4)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { names <- serving(t, o).Node })
	}
	wg.Wait()
	o.Node = "given"
	names <- serving(t, o).Node
	close(names)
	seen := map[string]bool{}
	for name := range names {
		if seen[name] {
			t.Fatalf("two nodes are named %q", name)
		}
		seen[name] = true
	}
	if !seen["given"] {
		t.Fatalf("got %v, want one named given", seen)
	}
}

package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// A server without a socket: it is found in the process, serves, and ends as planned. After its end it still says what it was.
func TestServerInTheProcess(t *testing.T) {
	s := beginning(t, Options{Embedded: embedded.Options{DontListen: true}, Roles: []string{RoleTimers, RoleOps, RoleBroker}, Partitions: 2})
	info, err := s.server.Ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !info.Ready || info.URL != "" || info.Partitions != 2 || !slices.Equal(info.Roles, []string{RoleBroker, RoleTimers, RoleOps}) {
		t.Errorf("got %+v", info)
	}
	conn, err := natsconn.Dial(t.Context(), natsconn.Options{InProcess: s.server})
	if err != nil {
		t.Fatal(err)
	}
	client, err := drover.Connect(t.Context(), &drover.Options{Conn: conn.NATS()})
	if err != nil {
		t.Fatal(err)
	}
	run, err := client.Start(t.Context(), "order", nil, &drover.StartOptions{ID: "o"})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := run.Describe(t.Context()); err != nil || d.Execution.Status != schemas.StatusOpen {
		t.Errorf("got %+v, %v, want an open run", d, err)
	}
	client.Close()
	conn.Close()
	s.end(t)
	if again, err := s.server.Ready(t.Context()); err != nil || again.Node != info.Node {
		t.Errorf("got %+v, %v after its end, want what it was", again, err)
	}
	if err := s.server.Run(t.Context()); !errors.Is(err, errAgain) {
		t.Errorf("got %v of a second run, want %v", err, errAgain)
	}
}

// Whoever waits for a server that is told to stop before it is ready hears so.
func TestReadyOfAServerThatStops(t *testing.T) {
	s, err := New(Options{Embedded: embedded.Options{DontListen: true}})
	if err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Ready(stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the caller has given up", err)
	}
	if err := s.Run(stopped); err != nil {
		t.Errorf("got %v of a server that was told to stop, want nil", err)
	}
	if _, err := s.Ready(t.Context()); !errors.Is(err, ErrNotReady) {
		t.Errorf("got %v, want %v", err, ErrNotReady)
	}
	if _, err := s.InProcessConn(); !errors.Is(err, ErrNotReady) {
		t.Errorf("got a connection, or %v, want %v", err, ErrNotReady)
	}
}

// A server beside a NATS elsewhere has none to connect to.
func TestNoServerOfItsOwn(t *testing.T) {
	_, o := bare(t)
	if _, err := serving(t, o).server.InProcessConn(); !errors.Is(err, ErrNoNATS) {
		t.Errorf("got %v, want %v", err, ErrNoNATS)
	}
}

// What is wrong is said by the name of the field, and leaves nothing after.
func TestOptionsAreRefused(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	elsewhere := &natsconn.Options{URL: "nats://127.0.0.1:1"}
	for want, o := range map[string]Options{
		`Roles names "juggler": use some of broker,timers,ops,flows`: {Roles: []string{RoleBroker, "juggler"}},
		`AfterCrash is "later"`:                {AfterCrash: "later"},
		"AfterCrash is halt, which needs Node": {AfterCrash: AfterCrashHalt, External: elsewhere},
		"MaxEvents is -1":                      {MaxEvents: -1},
		"DrainTimeout is -1s":                  {DrainTimeout: -time.Second},
		"ClaimTTL is 1ms":                      {ClaimTTL: time.Millisecond},
		"Partitions is 1000":                   {Partitions: 1000},
		"Replicas is 2":                        {Replicas: 2},
		"MaxBytes is 5":                        {MaxBytes: 5},
		"Node":                                 {Node: "a\nb"},
		"Port is 70000":                        {Embedded: embedded.Options{Port: 70000}},
		"Profile is single":                    {Embedded: embedded.Options{Profile: embedded.ProfileSingle}},
		"namespace":                            {Namespace: "a.b"},
	} {
		if o.Embedded.Profile == 0 {
			o.Embedded.StoreDir = store
		}
		if _, err := New(o); !errors.Is(err, ErrInvalidOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := os.Stat(store); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a store (%v)", err)
	}
}

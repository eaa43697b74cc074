package topology_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
)

// The server does not answer a user without permission. Nobody waits for that.
func TestRefused(t *testing.T) {
	srv, _ := embeddedtest.Start(t, false, embeddedtest.User{Name: "narrow", Publish: []string{"$JS.API.INFO"}, Subscribe: []string{"_INBOX.>"}})
	conn := embeddedtest.As(t, srv, "narrow")
	for name, call := range map[string]func() error{
		"Ensure": func() error { _, err := topology.Ensure(t.Context(), conn, topology.Options{}); return err },
		"Lookup": func() error { _, err := topology.Lookup(t.Context(), conn, "default"); return err },
	} {
		began := time.Now()
		err := call()
		e, ok := errors.AsType[*natsconn.RefusedError](err)
		if !ok || e.Subject != "$JS.API.STREAM.INFO.drover-default-signals" {
			t.Fatalf("%s: got %v, want the refused request", name, err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Fatalf("%s: took %v, want it at once", name, took)
		}
	}
}

// Accounts of hosted servers have limits for each number of replicas. What they refuse says which option is the way out.
func TestTieredAccountRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tier  string
		limit embeddedtest.Limits
		o     topology.Options
		want  string
	}{
		"no limit":       {"R1", embeddedtest.Limits{MaxBytesRequired: true}, topology.Options{}, "set MaxBytes (--max-bytes)"},
		"a large limit":  {"R1", embeddedtest.Limits{StoreMaxStreamBytes: 32 << 20}, topology.Options{MaxBytes: 64 << 20}, "lower MaxBytes (--max-bytes)"},
		"other replicas": {"R3", embeddedtest.Limits{}, topology.Options{}, "other numbers of Replicas (--replicas)"},
		"few streams":    {"R1", embeddedtest.Limits{MaxStreams: 5}, topology.Options{}, "raise the account's limit of streams"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := tc.limit
			limits.MaxStore, limits.MaxConsumers, limits.MaxAckPending = 4<<30, -1, -1
			if limits.MaxStreams == 0 {
				limits.MaxStreams = -1
			}
			conn, err := natsconn.Dial(t.Context(), natsconn.Options{URL: embeddedtest.StartTiered(t, tc.tier, limits)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(conn.Close)
			_, err = topology.Ensure(t.Context(), conn, tc.o)
			if !errors.Is(err, topology.ErrRefused) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want a refusal with %q", err, tc.want)
			}
		})
	}
}

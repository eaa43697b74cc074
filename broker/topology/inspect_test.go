package topology_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
)

// An inspection names what is missing, what the next start changes, and what it refuses; and it changes nothing itself.
func TestInspect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		conn := dial(t, embedded.Options{})
		if err := topology.CheckServer(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		if _, err := topology.Inspect(t.Context(), conn, "default"); !errors.Is(err, topology.ErrNoNamespace) {
			t.Fatalf("got %v, want ErrNoNamespace", err)
		}
		if _, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1, Memory: true}); err != nil {
			t.Fatal(err)
		}
		if err := topology.EnsureList(t.Context(), conn, "default", "PCI", topology.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		inspect := func() *topology.Inspection {
			t.Helper()
			i, err := topology.Inspect(t.Context(), conn, "default")
			if err != nil {
				t.Fatal(err)
			}
			return i
		}
		if i := inspect(); len(i.Differences) != 0 || len(i.Streams) != 15 || i.Partitions != 1 {
			t.Fatalf("got %+v, want no difference in 15 streams", i)
		} else if s := &i.Streams[14]; s.Version != conn.NATS().ConnectedServerVersion() || s.TooOld() != nil {
			t.Fatalf("got %+v, want the version of the server", s)
		}
		if err := topology.EnsurePayloads(t.Context(), conn, "default", ""); err != nil {
			t.Fatal(err)
		}
		if i := inspect(); len(i.Differences) != 0 || len(i.Streams) != 16 {
			t.Fatalf("got %+v, want no difference in 16 streams", i)
		}
		spoil(t, conn)
		want := []topology.Difference{
			{Stream: "drover-default-in-0", Field: "allow_msg_ttl", Conflict: true},
			{Stream: "drover-default-history-0", Field: "max_age"},
			{Stream: "drover-default-alarms-0"},
			{Stream: "drover-default-tasks-PCI", Field: "max_msgs"},
			{Stream: "OBJ_drover-default-payloads"},
		}
		for range 2 {
			i := inspect()
			if diff := cmp.Diff(want, i.Differences, cmpopts.IgnoreFields(topology.Difference{}, "Err")); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if err := i.Differences[0].Err; !errors.Is(err, topology.ErrConflict) {
				t.Fatalf("got %v, want ErrConflict", err)
			}
		}
		// What another start makes of the streams leaves the note of the store.
		if err := conn.JetStream().DeleteStream(t.Context(), "drover-default-in-0"); err != nil {
			t.Fatal(err)
		}
		if _, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1, Memory: true}); err != nil {
			t.Fatal(err)
		}
		if i := inspect(); !slices.ContainsFunc(i.Differences, func(d topology.Difference) bool { return d.Stream == "OBJ_drover-default-payloads" }) {
			t.Fatalf("got %+v, want the store of payloads named after a start", i.Differences)
		}
	})
}

// spoil does what an operator should not.
func spoil(t *testing.T, conn *natsconn.Conn) {
	t.Helper()
	js := conn.JetStream()
	in, history, tasks := config(t, conn, "drover-default-in-0"), config(t, conn, "drover-default-history-0"), config(t, conn, "drover-default-tasks-PCI")
	in.AllowMsgTTL, history.MaxAge, tasks.MaxMsgs = true, time.Hour, 5
	_, first := js.UpdateStream(t.Context(), in)
	_, second := js.UpdateStream(t.Context(), history)
	_, third := js.UpdateStream(t.Context(), tasks)
	if err := errors.Join(first, second, third, js.DeleteStream(t.Context(), "drover-default-alarms-0"),
		js.DeleteStream(t.Context(), "OBJ_drover-default-payloads")); err != nil {
		t.Fatal(err)
	}
}

// Streams that others have made: on what is asked, which no server minds, and on what one of Drover's should have.
func TestInspectNamesStreamsOfOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		conn := dial(t, embedded.Options{})
		js := conn.JetStream()
		if _, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1, Memory: true}); err != nil {
			t.Fatal(err)
		}
		if err := js.DeleteStream(t.Context(), "drover-default-in-0"); err != nil {
			t.Fatal(err)
		}
		for _, cfg := range []jetstream.StreamConfig{
			{Name: "taps", Subjects: []string{"drover.default.api.*", "orders.>", "drover.*.decide.>"}},
			{Name: "quiet", Subjects: []string{"drover-server.namespace.list"}, NoAck: true},
			{Name: "feed", Subjects: []string{"drover.default.event.>"}},
			{Name: "other", Subjects: []string{"drover.other.api.>"}},
			{Name: "inbox", Subjects: []string{"drover.default.in.0.*.>"}},
		} {
			cfg.Storage = jetstream.MemoryStorage
			if _, err := js.CreateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
		}
		i, err := topology.Inspect(t.Context(), conn, "default")
		if err != nil {
			t.Fatal(err)
		}
		want := []topology.ForeignStream{
			{Stream: "quiet", Subjects: []string{"drover-server.namespace.list"}, Silent: true},
			{Stream: "taps", Subjects: []string{"drover.default.api.*", "drover.*.decide.>"}},
		}
		if diff := cmp.Diff(want, i.ForeignStreams); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if len(i.Differences) != 1 || !i.Differences[0].Conflict || !strings.Contains(i.Differences[0].Err.Error(), "taken by stream inbox") {
			t.Errorf("got %+v, want that drover-default-in-0 cannot be made, for the stream inbox", i.Differences)
		}
	})
}

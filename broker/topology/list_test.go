package topology_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

func namespace(t *testing.T) (*natsconn.Conn, *topology.Namespace) {
	t.Helper()
	conn := dial(t, embedded.Options{})
	ns, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 1, MaxBytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return conn, ns
}

func workers(t *testing.T, conn *natsconn.Conn, ns subject.Namespace, list string) jetstream.ConsumerConfig {
	t.Helper()
	c, err := conn.JetStream().Consumer(t.Context(), ns.StreamTasks(list), topology.Consumer)
	if err != nil {
		t.Fatal(err)
	}
	return c.CachedInfo().Config
}

func TestEnsureList(t *testing.T) {
	conn, ns := namespace(t)
	for range 2 {
		if err := topology.EnsureList(t.Context(), conn, ns.Name, "PCI", topology.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config(t, conn, ns.Name.StreamTasks("PCI"))
	if cfg.Retention != jetstream.WorkQueuePolicy || cfg.Storage != jetstream.MemoryStorage || cfg.MaxBytes != ns.MaxBytes || cfg.AllowDirect || cfg.DenyDelete {
		t.Fatalf("got %+v, want a work queue like its namespace", cfg)
	}
	c := workers(t, conn, ns.Name, "PCI")
	if c.Durable != "workers" || c.AckPolicy != jetstream.AckExplicitPolicy || c.AckWait != 10*time.Second || c.MaxAckPending != -1 ||
		c.DeliverPolicy != jetstream.DeliverAllPolicy || c.MaxDeliver != -1 || c.MaxWaiting < 1000 {
		t.Fatalf("got %+v", c)
	}
	// More tasks than the client library's default of pending ones, all handed out.
	for i := range 1500 {
		if _, err := conn.PublishSync(t.Context(), ns.Name.Task("PCI", i%10), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	got := 0
	for began := time.Now(); got < 1500 && time.Since(began) < 8*time.Second; { // then they would come again
		for _, n := range []string{"workers-high", "workers", "workers-low"} {
			got += len(fetch(t, conn, ns.Name.StreamTasks("PCI"), n))
		}
	}
	if got != 1500 {
		t.Fatalf("got %d of 1500 tasks", got)
	}
}

// fetch takes everything that a consumer gives within a moment and leaves it unacknowledged.
func fetch(t *testing.T, conn *natsconn.Conn, stream, consumer string) (got []jetstream.Msg) {
	t.Helper()
	c, err := conn.JetStream().Consumer(t.Context(), stream, consumer)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := c.Fetch(1500, jetstream.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	for m := range batch.Messages() {
		got = append(got, m)
	}
	return got
}

func TestEnsureListAdjustsTheConsumer(t *testing.T) {
	conn, ns := namespace(t)
	ensure := func(o topology.ListOptions) jetstream.ConsumerConfig {
		t.Helper()
		if err := topology.EnsureList(t.Context(), conn, ns.Name, "a", o); err != nil {
			t.Fatal(err)
		}
		return workers(t, conn, ns.Name, "a")
	}
	want := ensure(topology.ListOptions{})
	edited := want
	edited.MaxAckPending, edited.MaxDeliver, edited.MaxRequestBatch, edited.HeadersOnly = 5, 3, 1, true
	edited.BackOff, edited.AckWait, edited.FilterSubject = []time.Duration{time.Second}, time.Second, "drover.default.task.a.odd"
	if _, err := conn.JetStream().UpdateConsumer(t.Context(), ns.Name.StreamTasks("a"), edited); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, ensure(topology.ListOptions{})); d != "" {
		t.Fatal(d)
	}
	want.AckWait = 30 * time.Second
	if d := cmp.Diff(want, ensure(topology.ListOptions{AckWait: 30 * time.Second})); d != "" {
		t.Fatal(d)
	}
}

func TestEnsureListConflicts(t *testing.T) {
	for _, tc := range []struct {
		name     string
		stream   func(*jetstream.StreamConfig)
		consumer func(*jetstream.ConsumerConfig)
		field    string
	}{
		{name: "limits retention", stream: func(c *jetstream.StreamConfig) { c.Retention = jetstream.LimitsPolicy }, field: "retention"},
		{name: "other subjects", stream: func(c *jetstream.StreamConfig) { c.Subjects = []string{"x.>"} }, field: "subjects"},
		{name: "a push consumer", consumer: func(c *jetstream.ConsumerConfig) { c.DeliverSubject, c.MaxWaiting = "x", 0 }, field: "delivery"},
		{name: "a priority group", consumer: func(c *jetstream.ConsumerConfig) {
			c.PriorityGroups, c.PriorityPolicy = []string{"g"}, jetstream.PriorityPolicyOverflow
		}, field: "priority groups"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn, ns := namespace(t)
			stream := jetstream.StreamConfig{
				Name: ns.Name.StreamTasks("a"), Subjects: []string{ns.Name.AllTasks("a")}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.MemoryStorage,
			}
			if tc.stream != nil {
				tc.stream(&stream)
			}
			if _, err := conn.JetStream().CreateStream(t.Context(), stream); err != nil {
				t.Fatal(err)
			}
			if tc.consumer != nil {
				c := jetstream.ConsumerConfig{Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy}
				tc.consumer(&c)
				if c.DeliverSubject != "" {
					if _, err := conn.JetStream().CreateOrUpdatePushConsumer(t.Context(), stream.Name, c); err != nil {
						t.Fatal(err)
					}
				} else if _, err := conn.JetStream().CreateConsumer(t.Context(), stream.Name, c); err != nil {
					t.Fatal(err)
				}
			}
			err := topology.EnsureList(t.Context(), conn, ns.Name, "a", topology.ListOptions{})
			got, ok := errors.AsType[*topology.ConflictError](err)
			if !ok || got.Field != tc.field || got.Stream != stream.Name || (got.Consumer != "") != (tc.consumer != nil) {
				t.Fatalf("got %v, want a conflict about %s", err, tc.field)
			}
		})
	}
}

func TestEnsureListLimits(t *testing.T) {
	conn, ns := namespace(t)
	o := topology.ListOptions{MaxLists: 3}
	for i := range 3 {
		if err := topology.EnsureList(t.Context(), conn, ns.Name, fmt.Sprint("list", i), o); err != nil {
			t.Fatal(err)
		}
	}
	err := topology.EnsureList(t.Context(), conn, ns.Name, "one-more", o)
	if !errors.Is(err, topology.ErrTooManyLists) || !strings.Contains(err.Error(), "3 of at most 3") || !strings.Contains(err.Error(), "raise MaxLists") {
		t.Fatalf("got %v, want %v with the number and the way out", err, topology.ErrTooManyLists)
	}
	if err := topology.EnsureList(t.Context(), conn, ns.Name, "list1", o); err != nil {
		t.Fatalf("a list that exists: %v", err)
	}
	// Another namespace has lists of its own.
	other, err := topology.Ensure(t.Context(), conn, topology.Options{Namespace: "other", Memory: true, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := topology.EnsureList(t.Context(), conn, other.Name, "one-more", o); err != nil {
		t.Fatal(err)
	}
}

func TestEnsureListNeedsItsNamespace(t *testing.T) {
	conn := dial(t, embedded.Options{})
	if err := topology.EnsureList(t.Context(), conn, "shop", "a", topology.ListOptions{}); !errors.Is(err, topology.ErrNoNamespace) || !strings.Contains(err.Error(), "namespace create shop") {
		t.Fatalf("got %v, want %v with the way out", err, topology.ErrNoNamespace)
	}
	for _, bad := range []string{"", "a.b", "a*", "a b", ">", strings.Repeat("a", 65)} {
		if err := topology.EnsureList(t.Context(), conn, "shop", bad, topology.ListOptions{}); !errors.Is(err, subject.ErrInvalidID) {
			t.Errorf("list %q: got %v, want %v", bad, err, subject.ErrInvalidID)
		}
	}
}

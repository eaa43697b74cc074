package topology_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
)

func TestEnsureMakesANamespace(t *testing.T) {
	for _, tc := range []struct {
		name string
		e    embedded.Options
		o    topology.Options
		want topology.Namespace
	}{
		{"memory", embedded.Options{}, topology.Options{Memory: true}, topology.Namespace{Name: "default", Partitions: 4, Replicas: 1, Memory: true, Compression: "none"}},
		{
			"file",
			embedded.Options{StoreDir: t.TempDir(), Profile: embedded.ProfileDev},
			topology.Options{Namespace: "shop", Partitions: 2, MaxBytes: 128 << 20, Compression: "s2"},
			topology.Namespace{Name: "shop", Partitions: 2, Replicas: 1, MaxBytes: 128 << 20, Compression: "s2"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn := dial(t, tc.e)
			got, err := topology.Ensure(t.Context(), conn, tc.o)
			if err != nil {
				t.Fatal(err)
			}
			tc.want.FlowRetention, tc.want.Retention = topology.DefaultFlowRetention, topology.DefaultRetention
			if d := cmp.Diff(&tc.want, got); d != "" {
				t.Fatal(d)
			}
			ns := got.Name
			want := []string{ns.StreamSignals(), ns.StreamDead(), ns.StreamOperations(), "KV_" + ns.BucketClaims(), "KV_" + ns.BucketCheckpoints(), "KV_" + ns.BucketTypes(), "KV_" + ns.BucketFlows(), "KV_" + ns.BucketLocks(), "KV_" + ns.BucketState(), "KV_" + ns.BucketSchedules(), "KV_drover-nodes"}
			for p := range got.Partitions {
				want = append(want, ns.StreamIn(p), ns.StreamHistory(p), ns.StreamAlarms(p))
			}
			all := names(t, conn)
			slices.Sort(all)
			slices.Sort(want)
			if d := cmp.Diff(want, all); d != "" {
				t.Fatal(d)
			}
			for _, name := range all {
				checkStream(t, config(t, conn, name), got)
			}
		})
	}
}

// checkStream checks what every stream must have, and what its kind must have.
func checkStream(t *testing.T, c jetstream.StreamConfig, ns *topology.Namespace) {
	t.Helper()
	bucket := strings.HasPrefix(c.Name, "KV_")
	kind := strings.TrimRight(strings.TrimPrefix(strings.TrimPrefix(c.Name, "KV_"), "drover-"+string(ns.Name)+"-"), "-0123456789")
	got := map[string]any{
		"discard": c.Discard, "memory": c.Storage == jetstream.MemoryStorage, "direct": c.AllowDirect, "rollup": c.AllowRollup,
		"per subject": c.MaxMsgsPerSubject, "ttl": c.AllowMsgTTL, "deny delete": c.DenyDelete, "deny purge": c.DenyPurge,
		"schedules": c.AllowMsgSchedules, "compression": c.Compression, "retention": c.Retention, "age": c.MaxAge, "msgs": c.MaxMsgs,
		"limited": c.MaxBytes > 0, "duplicates": c.Duplicates,
	}
	want := map[string]any{
		"discard": jetstream.DiscardNew, "memory": ns.Memory, "direct": true, "rollup": bucket,
		"per subject": int64(-1), "ttl": kind == "claims" || kind == "locks" || kind == "state" || kind == "schedules", "deny delete": kind != "alarms", "deny purge": false,
		"schedules": false, "compression": jetstream.NoCompression, "retention": jetstream.LimitsPolicy, "age": time.Duration(0), "msgs": int64(-1),
		"limited": ns.MaxBytes > 0, "duplicates": 100 * time.Millisecond,
	}
	switch kind {
	case "dead":
		want["discard"] = jetstream.DiscardOld
	case "operations":
		want["discard"], want["age"], want["msgs"] = jetstream.DiscardOld, 400*24*time.Hour, int64(100_000)
	case "history":
		if ns.Compression == topology.CompressionS2 {
			want["compression"] = jetstream.S2Compression
		}
	}
	if kind == "flows" {
		want["rollup"] = false // people write it
	}
	if bucket || kind == "alarms" {
		want["per subject"] = int64(1)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (%s): %s", c.Name, kind, d)
	}
	if c.Description == "" || c.Metadata["drover.version"] == "" || c.Metadata["drover.schema"] != "1" {
		t.Errorf("%s: description %q, metadata %v, want both filled", c.Name, c.Description, c.Metadata)
	}
	if c.Name != "KV_drover-nodes" && (c.Metadata["drover.namespace"] != string(ns.Name) || c.Metadata["drover.partitions"] != fmt.Sprint(ns.Partitions)) {
		t.Errorf("%s: metadata %v, want namespace %s and %d partitions", c.Name, c.Metadata, ns.Name, ns.Partitions)
	}
}

func TestStreamsDoTheirWork(t *testing.T) {
	conn := dial(t, embedded.Options{})
	info, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	ns := info.Name
	t.Run("a signal gets its partition", func(t *testing.T) {
		if _, err := conn.PublishSync(t.Context(), ns.Signal("order/7", "paid"), nil, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		want := ns.SignalStored(subject.Partition("order/7", info.Partitions), "order/7", "paid")
		if m, err := conn.LastBySubject(t.Context(), ns.StreamSignals(), ns.AllSignalsStored()); err != nil || m.Subject != want {
			t.Fatalf("got %v, %v, want %s", m, err, want)
		}
	})
	t.Run("an alarm replaces the one before", func(t *testing.T) {
		for range 3 {
			if _, err := conn.PublishSync(t.Context(), ns.Alarm(1, "w", "r"), nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if first, last, err := conn.StreamState(t.Context(), ns.StreamAlarms(1)); first != 3 || last != 3 || err != nil {
			t.Fatalf("got %d to %d, %v, want 3 to 3", first, last, err)
		}
		if err := conn.DeleteMsg(t.Context(), ns.StreamAlarms(1), 3); err != nil {
			t.Fatalf("an alarm that has rung cannot be deleted: %v", err)
		}
	})
	t.Run("an inbox is purged, and no message deleted", func(t *testing.T) {
		for range 3 {
			if _, err := conn.PublishSync(t.Context(), ns.In(0, "w", "start"), nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.DeleteMsg(t.Context(), ns.StreamIn(0), 2); err == nil {
			t.Fatal("a message was deleted from an inbox")
		}
		if err := conn.Purge(t.Context(), ns.StreamIn(0), "", 3); err != nil {
			t.Fatal(err)
		}
		if first, _, err := conn.StreamState(t.Context(), ns.StreamIn(0)); first != 3 || err != nil {
			t.Fatalf("got the first at %d, %v, want 3", first, err)
		}
	})
	t.Run("less trusted publishers cannot roll up, expire or schedule", func(t *testing.T) {
		for _, h := range []natsconn.Header{{"Nats-Rollup": {"all"}}, {"Nats-TTL": {"1s"}}, {"Nats-Schedule": {"@at 2030-01-01T00:00:00Z"}, "Nats-Schedule-Target": {ns.In(0, "w", "x")}}} {
			for _, s := range []string{ns.In(0, "w", "start"), ns.Signal("w", "s")} {
				if seq, err := conn.PublishSync(t.Context(), s, h, nil); err == nil {
					t.Errorf("%s took %v as %d, want a refusal", s, h, seq)
				}
			}
		}
	})
	t.Run("the client library opens the buckets", func(t *testing.T) {
		kv, err := conn.JetStream().KeyValue(t.Context(), ns.BucketClaims())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kv.Create(t.Context(), "partition.0", []byte("x"), jetstream.KeyTTL(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.KVCreate(t.Context(), ns.BucketCheckpoints(), "partition.0", []byte("x"), time.Hour); err == nil {
			t.Fatal("a checkpoint was given a TTL")
		}
	})
}

func TestEnsureIsIdempotent(t *testing.T) {
	conn := dial(t, embedded.Options{})
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	o := topology.Options{Memory: true, Partitions: 2, MaxBytes: 32 << 20, Version: "1.0.0", Logger: log}
	first, err := topology.Ensure(t.Context(), conn, o)
	if err != nil {
		t.Fatal(err)
	}
	var before []jetstream.StreamConfig
	for _, n := range names(t, conn) {
		before = append(before, config(t, conn, n))
	}
	hook.Reset()
	// What is not set is what the namespace has; another version of the program changes nothing.
	second, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Version: "2.0.0", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first, second); d != "" {
		t.Fatal(d)
	}
	for _, want := range before {
		if d := cmp.Diff(want, config(t, conn, want.Name)); d != "" {
			t.Errorf("%s changed: %s", want.Name, d)
		}
	}
	for _, e := range hook.AllEntries() {
		if e.Level != logrus.DebugLevel || strings.Contains(e.Message, "stream") {
			t.Errorf("got %v %q from a repeat, want no change", e.Level, e.Message)
		}
	}
}

func TestEnsureAppliesChangedLimits(t *testing.T) {
	conn := dial(t, embedded.Options{})
	ensure := func(o topology.Options) *topology.Namespace {
		t.Helper()
		o.Memory = true
		ns, err := topology.Ensure(t.Context(), conn, o)
		if err != nil {
			t.Fatal(err)
		}
		return ns
	}
	ns := ensure(topology.Options{Partitions: 1})
	if _, err := conn.PublishSync(t.Context(), ns.Name.In(0, "w", "start"), nil, []byte("kept")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ set, streams, small int64 }{{32 << 20, 32 << 20, 32 << 20}, {72 << 20, 72 << 20, 64 << 20}, {0, 72 << 20, 64 << 20}, {-1, -1, -1}} {
		ns = ensure(topology.Options{MaxBytes: tc.set})
		if ns.MaxBytes != max(tc.streams, 0) {
			t.Fatalf("got %v, want a limit of %d", ns, tc.streams)
		}
		for name, want := range map[string]int64{
			ns.Name.StreamIn(0): tc.streams, ns.Name.StreamSignals(): tc.streams, ns.Name.StreamDead(): tc.streams, "KV_" + ns.Name.BucketState(): tc.streams,
			"KV_" + ns.Name.BucketFlows(): tc.streams, "KV_" + ns.Name.BucketLocks(): tc.streams, "KV_" + ns.Name.BucketClaims(): tc.small,
		} {
			if got := config(t, conn, name).MaxBytes; got != want {
				t.Errorf("MaxBytes %d: %s has %d, want %d", tc.set, name, got, want)
			}
		}
	}
	if m, err := conn.GetSeq(t.Context(), ns.Name.StreamIn(0), 1); err != nil || string(m.Data) != "kept" {
		t.Fatalf("got %v, %v, want the message untouched", m, err)
	}
}

// TestEnsureRepairs changes what an operator may have changed and sees it put right, and what is his left alone.
func TestEnsureRepairs(t *testing.T) {
	conn := dial(t, embedded.Options{})
	o := topology.Options{Memory: true, Partitions: 1}
	ns, err := topology.Ensure(t.Context(), conn, o)
	if err != nil {
		t.Fatal(err)
	}
	want := config(t, conn, ns.Name.StreamHistory(0))
	edited := want
	edited.MaxAge, edited.MaxMsgs, edited.MaxMsgSize, edited.Discard, edited.AllowDirect, edited.NoAck = time.Hour, 10, 100, jetstream.DiscardOld, false, true
	edited.AllowRollup = true
	edited.Metadata = map[string]string{"team": "orders"}
	dead := config(t, conn, ns.Name.StreamDead())
	dead.MaxAge = 24 * time.Hour
	for _, c := range []jetstream.StreamConfig{edited, dead} {
		if _, err := conn.JetStream().UpdateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := topology.Ensure(t.Context(), conn, o); err != nil {
		t.Fatal(err)
	}
	got := config(t, conn, want.Name)
	if got.Metadata["team"] != "orders" {
		t.Errorf("got metadata %v, want the operator's kept", got.Metadata)
	}
	delete(got.Metadata, "team")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("history: %s", d)
	}
	if got := config(t, conn, ns.Name.StreamDead()).MaxAge; got != 24*time.Hour {
		t.Errorf("got dead letters kept for %v, want the operator's day", got)
	}
}

func TestEnsureFromManyProcesses(t *testing.T) {
	s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
	var wg sync.WaitGroup
	got := make([]*topology.Namespace, 8)
	errs := make([]error, len(got))
	for i := range got {
		conn := embeddedtest.Connect(t, s)
		wg.Go(func() {
			// Half of them want another number of partitions; who comes first decides for all.
			o := topology.Options{Memory: true, Partitions: 1 + i%2, Version: fmt.Sprint(i)}
			if got[i], errs[i] = topology.Ensure(t.Context(), conn, o); errs[i] == nil {
				errs[i] = topology.EnsureList(t.Context(), conn, got[i].Name, "PCI", topology.ListOptions{})
			}
		})
	}
	wg.Wait()
	made, refused := map[int]int{}, 0
	for i, err := range errs {
		conflict, ok := errors.AsType[*topology.ConflictError](err)
		switch {
		case err == nil:
			made[got[i].Partitions]++
		case ok && strings.Contains(conflict.Field, "partitions"):
			refused++
		default:
			t.Errorf("process %d: %v", i, err)
		}
	}
	if len(made) != 1 || refused != 4 {
		t.Fatalf("got successes by partitions %v and %d refused, want one number and 4", made, refused)
	}
}

func TestEnsureObeysItsContext(t *testing.T) {
	conn := dial(t, embedded.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := topology.Ensure(ctx, conn, topology.Options{Memory: true}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
}

func TestNamespacePrints(t *testing.T) {
	for want, ns := range map[string]*topology.Namespace{
		"namespace=a partitions=4 replicas=1 storage=file":                      {Name: "a", Partitions: 4, Replicas: 1},
		"namespace=a partitions=8 replicas=3 storage=memory max-bytes=33554432": {Name: "a", Partitions: 8, Replicas: 3, Memory: true, MaxBytes: 32 << 20},
		`namespace=a partitions=1 replicas=1 storage=file retention="1d"`: {
			Name: "a", Partitions: 1, Replicas: 1, FlowRetention: topology.DefaultFlowRetention, Retention: "1d",
		},
	} {
		if got := ns.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func ExampleEnsure() {
	ctx := context.Background()
	server, err := embedded.Start(ctx, embedded.Options{DontListen: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Shutdown()
	conn, err := natsconn.Dial(ctx, natsconn.Options{InProcess: server.Conn()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	ns, err := topology.Ensure(ctx, conn, topology.Options{Memory: server.Memory()})
	fmt.Println(ns, err)
	// Output: namespace=default partitions=4 replicas=1 storage=memory <nil>
}

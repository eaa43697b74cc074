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
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
)

// ensure makes a small namespace in memory.
func ensure(t *testing.T, conn *natsconn.Conn, o topology.Options) *topology.Namespace {
	t.Helper()
	o.Memory = true
	if o.Partitions == 0 {
		o.Partitions = 1
	}
	ns, err := topology.Ensure(t.Context(), conn, o)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// foreign makes streams of other programs that lie on the subjects of namespace a, or look like something of it.
func foreign(t *testing.T, conn *natsconn.Conn) []string {
	t.Helper()
	all := []jetstream.StreamConfig{
		{Name: "feed", Subjects: []string{"drover.a.event.>"}, Storage: jetstream.MemoryStorage},
		{Name: "drover-a-feed", Subjects: []string{"drover.a.control.*"}, Storage: jetstream.MemoryStorage},
		{Name: "drover-x-signals", Subjects: []string{"drover.x.signal.*.*"}, Storage: jetstream.MemoryStorage},
		{Name: "KV_drover-a-mine", Subjects: []string{"$KV.drover-a-mine.>"}, Storage: jetstream.MemoryStorage},
		{Name: "OBJ_drover-a-mine", Subjects: []string{"$O.drover-a-mine.C.>"}, Storage: jetstream.MemoryStorage},
	}
	var names []string
	for _, c := range all {
		if _, err := conn.JetStream().CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		names = append(names, c.Name)
	}
	return names
}

func TestNamespacesAreFound(t *testing.T) {
	conn := dial(t, embedded.Options{})
	if got, err := topology.Names(t.Context(), conn); err != nil || len(got) != 0 {
		t.Fatalf("got %v, %v, want none", got, err)
	}
	foreign(t, conn)
	yes := true
	ensure(t, conn, topology.Options{Namespace: "b", Partitions: 3, MaxBytes: 50 << 20, RequireTypes: &yes, Description: "of b"})
	ensure(t, conn, topology.Options{Namespace: "a-b"})
	ensure(t, conn, topology.Options{Namespace: "a"})
	if err := topology.EnsureList(t.Context(), conn, "a", "signals", topology.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	names, err := topology.Names(t.Context(), conn)
	// x has a stream that looks like the beginning of a namespace; only a closer look tells.
	if want := []subject.Namespace{"a", "a-b", "b", "x"}; err != nil || !slices.Equal(names, want) {
		t.Fatalf("got %v, %v, want %v", names, err, want)
	}
	list, err := topology.List(t.Context(), conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []*topology.Info{
		{Namespace: topology.Namespace{Name: "a", Partitions: 1, Replicas: 1, Memory: true, Compression: "none"}},
		{Namespace: topology.Namespace{Name: "a-b", Partitions: 1, Replicas: 1, Memory: true, Compression: "none"}},
		{Namespace: topology.Namespace{Name: "b", Partitions: 3, Replicas: 1, Memory: true, MaxBytes: 50 << 20, Compression: "none", RequireTypes: true, Description: "of b"}},
	}
	for _, i := range want {
		i.FlowRetention, i.Retention = topology.DefaultFlowRetention, topology.DefaultRetention
	}
	if d := cmp.Diff(want, list, cmpopts.IgnoreFields(topology.Info{}, "Created")); d != "" {
		t.Fatal(d)
	}
	for _, i := range list {
		if time.Since(i.Created) > time.Minute || i.Created.IsZero() {
			t.Errorf("%s: got created %v, want now", i.Name, i.Created)
		}
	}
	for name, want := range map[subject.Namespace]error{"nobody": topology.ErrNoNamespace, "x": topology.ErrConflict, "a.b": subject.ErrInvalidID, "": subject.ErrInvalidID} {
		if _, err := topology.Describe(t.Context(), conn, name); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", name, err, want)
		}
	}
}

func TestDescribeCounts(t *testing.T) {
	conn := dial(t, embedded.Options{})
	foreign(t, conn)
	ensure(t, conn, topology.Options{Namespace: "a-b"})
	ns := ensure(t, conn, topology.Options{Namespace: "a", Partitions: 2}).Name
	for _, list := range []string{"words", "PCI"} {
		if err := topology.EnsureList(t.Context(), conn, ns, list, topology.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.JetStream().CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: ns.StorePayloads(), Storage: jetstream.MemoryStorage}); err != nil {
		t.Fatal(err)
	}
	for s, n := range map[string]int{ns.Signal("w", "s"): 1, ns.In(1, "w", "start"): 2, ns.History(0, "w", "r"): 3, ns.Alarm(0, "w", "r"): 4, ns.Task("PCI", 5): 5, ns.Dead("why"): 6} {
		for range n {
			if _, err := conn.PublishSync(t.Context(), s, nil, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := topology.Describe(t.Context(), conn, ns)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]uint64{}
	streams := 0
	for _, u := range got.Usage {
		kinds[u.Kind] = u.Messages
		streams += u.Streams
		if (u.Bytes > 0) != (u.Messages > 0) {
			t.Errorf("%s: got %d bytes for %d messages", u.Kind, u.Bytes, u.Messages)
		}
	}
	want := map[string]uint64{"signals": 1, "inbox": 2, "history": 3, "alarms": 1, "tasks": 5, "dead": 6, "operations": 0, "buckets": 0, "payloads": 0}
	if d := cmp.Diff(want, kinds); d != "" || !slices.Equal(got.Lists, []string{"PCI", "words"}) {
		t.Fatalf("lists %v, messages (-want +got):\n%s", got.Lists, d)
	}
	if all := len(belonging(t, conn, "a")); streams != all {
		t.Fatalf("got %d streams, want %d", streams, all)
	}
}

// belonging are the streams of a namespace by what was made, not by what the package thinks.
func belonging(t *testing.T, conn *natsconn.Conn, ns subject.Namespace) []string {
	t.Helper()
	return slices.DeleteFunc(names(t, conn), func(name string) bool {
		rest := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "KV_"), "OBJ_"), "drover-")
		kind, ok := strings.CutPrefix(rest, string(ns)+"-")
		kind, _, _ = strings.Cut(kind, "-")
		return !ok || !slices.Contains([]string{"signals", "in", "history", "alarms", "dead", "tasks", "claims", "checkpoints", "types", "flows", "locks", "state", "schedules", "operations", "payloads"}, kind)
	})
}

func TestEnsureChangesWhatMayChange(t *testing.T) {
	conn := dial(t, embedded.Options{})
	yes, no := true, false
	for _, tc := range []struct {
		o    topology.Options
		want topology.Namespace
	}{
		{topology.Options{}, topology.Namespace{}},
		{topology.Options{RequireTypes: &yes, Description: "first"}, topology.Namespace{RequireTypes: true, Description: "first"}},
		{topology.Options{}, topology.Namespace{RequireTypes: true, Description: "first"}},
		{topology.Options{RequireTypes: &no, Description: "second"}, topology.Namespace{Description: "second"}},
		{topology.Options{Retention: "1d", FlowRetention: "max(5, 1h)"}, topology.Namespace{Description: "second", Retention: "1d", FlowRetention: "max(5, 1h)"}},
		{topology.Options{}, topology.Namespace{Description: "second", Retention: "1d", FlowRetention: "max(5, 1h)"}},
		{topology.Options{Retention: "7d", FlowRetention: "3 soft 3"}, topology.Namespace{Description: "second"}},
	} {
		got := ensure(t, conn, tc.o)
		seen, err := topology.Lookup(t.Context(), conn, got.Name)
		if err != nil {
			t.Fatal(err)
		}
		if tc.want.Retention == "" {
			tc.want.Retention, tc.want.FlowRetention = topology.DefaultRetention, topology.DefaultFlowRetention
		}
		tc.want.Name, tc.want.Partitions, tc.want.Replicas, tc.want.Memory, tc.want.Compression = "default", 1, 1, true, "none"
		if d := cmp.Diff([]topology.Namespace{tc.want, tc.want}, []topology.Namespace{*got, seen.Namespace}); d != "" {
			t.Fatalf("%+v (-want +got):\n%s", tc.o, d)
		}
	}
	for want, o := range map[string]topology.Options{
		"Description has 1025": {Description: strings.Repeat("x", 1025)}, "control characters": {Description: "a\nb"}, "of text": {Description: "\xff"},
		"Retention: retention": {Retention: "any(1)"}, "FlowRetention: retention": {FlowRetention: "disabled"},
	} {
		if _, err := topology.Ensure(t.Context(), conn, o); !errors.Is(err, topology.ErrInvalidOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want one about %q", err, want)
		}
	}
}

// A new limit reaches the streams that were made on first use, and makes none of them.
func TestEnsureLimitsWhatCameLater(t *testing.T) {
	conn := dial(t, embedded.Options{})
	ns := ensure(t, conn, topology.Options{}).Name
	for _, limit := range []int64{32 << 20, 60 << 20, -1} {
		ensure(t, conn, topology.Options{MaxBytes: limit})
		for _, name := range belonging(t, conn, ns) {
			if got := config(t, conn, name).MaxBytes; got != limit {
				t.Errorf("%s: got a limit of %d, want %d", name, got, limit)
			}
		}
		if err := topology.EnsureList(t.Context(), conn, ns, "words", topology.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := topology.EnsurePayloads(t.Context(), conn, ns, ""); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(belonging(t, conn, ns)); got != 15 {
		t.Fatalf("got %d streams, want 15", got)
	}
}

// One that cannot be read keeps nobody from the others.
func TestListNamesWhatItCannotRead(t *testing.T) {
	may := []string{"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.drover-a-signals", "$JS.API.STREAM.INFO.drover-c-signals"}
	srv, _ := embeddedtest.Start(t, false, embeddedtest.User{Name: "narrow", Publish: may, Subscribe: []string{"_INBOX.>"}})
	root := embeddedtest.As(t, srv, embeddedtest.Root)
	for _, ns := range []string{"a", "b", "c", "d"} {
		ensure(t, root, topology.Options{Namespace: ns})
	}
	list, err := topology.List(t.Context(), embeddedtest.As(t, srv, "narrow"), nil)
	unread, ok := errors.AsType[*topology.UnreadError](err)
	if want := []subject.Namespace{"b", "d"}; !ok || !slices.Equal(unread.Names, want) || !errors.Is(err, natsconn.ErrPermission) {
		t.Fatalf("got %v, want %v unread", err, want)
	}
	if len(list) != 2 || list[0].Name != "a" || list[1].Name != "c" {
		t.Fatalf("got %v, want a and c", list)
	}
}

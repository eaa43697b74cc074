package subject_test

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"pgregory.net/rapid"

	"github.com/droverhq/drover/broker/subject"
)

func TestPartitionIsFNV(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, n := rapid.String().Draw(t, "id"), rapid.IntRange(1, 1000).Draw(t, "n")
		h := fnv.New32a()
		h.Write([]byte(subject.Token(id)))
		if got, want := subject.Partition(id, n), int(h.Sum32()%uint32(n)); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
	for _, n := range []int{-1, 0, 1} {
		if got := subject.Partition("w", n); got != 0 {
			t.Fatalf("%d partitions: got %d, want 0", n, got)
		}
	}
}

// The signals stream puts the partition first with the server's own transform; brokers compute it themselves.
func TestPartitionEqualsTheServersTransform(t *testing.T) {
	srv, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("server not ready")
	}
	nc, err := nats.Connect("", nats.InProcessServer(srv))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{"order-1", "a.b", "*", ">", "x y", "100%", "%2E", "日本語", strings.Repeat("é", 128), "a=b~c@d:e"}
	for i := range 200 {
		ids = append(ids, fmt.Sprintf("wf/%d", i))
	}
	for _, partitions := range []int{1, 4, 7} {
		n := subject.Namespace(fmt.Sprintf("p%d", partitions))
		source, dest := n.SignalTransform(partitions)
		stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: n.StreamSignals(), Subjects: []string{n.AllSignals()}, Storage: jetstream.MemoryStorage,
			SubjectTransform: &jetstream.SubjectTransformConfig{Source: source, Destination: dest},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			ack, err := js.Publish(t.Context(), n.Signal(id, "go > now"), nil)
			if err != nil {
				t.Fatal(err)
			}
			msg, err := stream.GetMsg(t.Context(), ack.Sequence)
			if err != nil {
				t.Fatal(err)
			}
			p := subject.Partition(id, partitions)
			if want := n.SignalStored(p, id, "go > now"); msg.Subject != want {
				t.Fatalf("got %q, want %q", msg.Subject, want)
			}
			if gp, wid, name, err := subject.ParseSignalStored(msg.Subject); err != nil || gp != p || wid != id || name != "go > now" {
				t.Fatalf("got %d %q %q %v", gp, wid, name, err)
			}
		}
	}
}

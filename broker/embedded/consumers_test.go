package embedded_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/internal/virtual"
)

// A power cut takes the last messages of a work queue, and leaves what its consumer says of them.
// What is stored in their place is delivered, also if the consumer had no acknowledgement yet.
func TestConsumerPastTheEndOfItsStream(t *testing.T) {
	for name, tc := range map[string]struct {
		others int  // messages for another consumer, which are not lost
		acked  int  // of the three that are lost
		late   bool // the consumer was made when they were removed
	}{
		"every message is lost":                  {},
		"the last messages are lost":             {others: 2},
		"every message is lost, one was acked":   {acked: 1},
		"the last ones are lost, one was acked":  {others: 2, acked: 1},
		"every message is lost, all were acked":  {acked: 3},
		"every message is lost, none was for it": {late: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := embedded.Options{StoreDir: oddDir(t), Profile: embedded.ProfileSingle}
			blocks := filepath.Join(o.StoreDir, "jetstream", "$G", "streams", "a", "msgs")
			kept := filepath.Join(t.TempDir(), "msgs")
			virtual.Run(t, func(t *testing.T) {
				withServer(t, o, func(js jetstream.JetStream) {
					makeQueue(t, js)
					if !tc.late {
						makeWorker(t, js)
					}
					store(t, js, "a.other", slices.Repeat([]string{"other"}, tc.others)...)
				})
				copyFolder(t, kept, blocks)
				withServer(t, o, func(js jetstream.JetStream) {
					store(t, js, "a.b", "lost 1", "lost 2", "lost 3")
					if tc.late {
						purge(t, js)
						makeWorker(t, js)
						return
					}
					ack(t, deliveries(t, js, "lost 1", "lost 2", "lost 3")[:tc.acked])
				})
				if err := os.RemoveAll(blocks); err != nil {
					t.Fatal(err)
				}
				copyFolder(t, blocks, kept)
				for _, again := range []string{"again 1", "again 2"} { // the second start mends nothing
					withServer(t, o, func(js jetstream.JetStream) {
						store(t, js, "a.b", again)
						ack(t, deliveries(t, js, again))
					})
				}
			})
		})
	}
}

// withServer has a server for the length of fn.
func withServer(t *testing.T, o embedded.Options, fn func(js jetstream.JetStream)) {
	t.Helper()
	s := start(t, o)
	defer s.Shutdown()
	fn(connect(t, s))
}

// makeQueue makes the stream "a".
func makeQueue(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	queue := jetstream.StreamConfig{
		Name: "a", Subjects: []string{"a.>"}, Retention: jetstream.WorkQueuePolicy,
	}
	if _, err := js.CreateStream(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
}

// makeWorker makes its consumer "worker" of the messages "a.b".
func makeWorker(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	worker := jetstream.ConsumerConfig{
		Durable: "worker", AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "a.b",
	}
	if _, err := js.CreateConsumer(t.Context(), "a", worker); err != nil {
		t.Fatal(err)
	}
}

// purge removes every message of the stream.
func purge(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	str, err := js.Stream(t.Context(), "a")
	if err == nil {
		err = str.Purge(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func copyFolder(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func ack(t *testing.T, all []jetstream.Msg) {
	t.Helper()
	for _, m := range all {
		if err := m.DoubleAck(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func store(t *testing.T, js jetstream.JetStream, subject string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if _, err := js.Publish(t.Context(), subject, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
}

// deliveries are the next ones of the consumer "worker", which must have these bodies.
func deliveries(t *testing.T, js jetstream.JetStream, bodies ...string) (all []jetstream.Msg) {
	t.Helper()
	c, err := js.Consumer(t.Context(), "a", "worker")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range bodies {
		m, err := c.Next(jetstream.FetchMaxWait(5 * time.Second))
		if err != nil {
			t.Fatalf("got %v, want %q; the consumer has delivered up to message %d",
				err, want, c.CachedInfo().Delivered.Stream)
		}
		if string(m.Data()) != want {
			t.Fatalf("got %q, want %q", m.Data(), want)
		}
		all = append(all, m)
	}
	return all
}

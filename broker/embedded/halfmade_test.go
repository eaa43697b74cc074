package embedded_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
)

// A power cut falls between the two files that define a stream, or a consumer. The next start has neither; who makes them
// again may use them, and the start behind that has them with all that they hold.
func TestHalfMadeStreamIsMadeAgain(t *testing.T) {
	for name, half := range map[string]string{"stream": "", "consumer": filepath.Join("obs", "worker")} {
		t.Run(name, func(t *testing.T) {
			dir := oddDir(t)
			config := jetstream.ConsumerConfig{Durable: "worker", AckPolicy: jetstream.AckExplicitPolicy}
			s := start(t, embedded.Options{StoreDir: dir})
			js := connect(t, s)
			makeStream(t, s, js, "a")
			if _, err := js.CreateOrUpdateConsumer(t.Context(), "a", config); err != nil {
				t.Fatal(err)
			}
			s.Shutdown()
			folder := filepath.Join(dir, "jetstream", "$G", "streams", "a", half)
			for _, file := range []string{"meta.sum", "o.dat"} {
				if err := os.Remove(filepath.Join(folder, file)); err != nil && (file == "meta.sum" || !os.IsNotExist(err)) {
					t.Fatal(err)
				}
			}
			if half == "" { // the server makes the folder of messages and their first block later
				if err := os.RemoveAll(filepath.Join(folder, "msgs")); err != nil {
					t.Fatal(err)
				}
			}

			s = start(t, embedded.Options{StoreDir: dir})
			js = connect(t, s)
			makeStream(t, s, js, "a")
			if _, err := js.CreateOrUpdateConsumer(t.Context(), "a", config); err != nil {
				t.Fatal(err)
			}
			if _, err := js.Publish(t.Context(), "a.b", []byte("x")); err != nil {
				t.Fatal(err)
			}
			s.Shutdown()

			s = start(t, embedded.Options{StoreDir: dir})
			js = connect(t, s)
			c, err := js.Consumer(t.Context(), "a", "worker")
			if err != nil {
				t.Fatal(err)
			}
			m, err := c.Next()
			if err != nil || string(m.Data()) != "x" {
				t.Fatalf("got %v, %v, want the message", m, err)
			}
		})
	}
}

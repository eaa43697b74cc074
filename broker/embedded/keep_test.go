package embedded_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/embedded"
)

// A power cut can leave the state of a consumer empty or torn. The server refuses to make one again whose state is torn; that
// is set aside, and what was not acknowledged comes again.
func TestTornConsumerState(t *testing.T) {
	for name, torn := range map[string]string{"empty, which the server takes for none": "", "torn": "\x16\x02\xff"} {
		t.Run(name, func(t *testing.T) {
			dir := oddDir(t)
			s := start(t, embedded.Options{StoreDir: dir})
			js := connect(t, s)
			makeStream(t, s, js, "a")
			config := jetstream.ConsumerConfig{Durable: "worker", AckPolicy: jetstream.AckExplicitPolicy}
			if _, err := js.CreateOrUpdateConsumer(t.Context(), "a", config); err != nil {
				t.Fatal(err)
			}
			if _, err := js.Publish(t.Context(), "a.b", []byte("x")); err != nil {
				t.Fatal(err)
			}
			s.Shutdown()
			state := filepath.Join(dir, "jetstream", "$G", "streams", "a", "obs", "worker", "o.dat")
			if err := os.WriteFile(state, []byte(torn), 0o600); err != nil {
				t.Fatal(err)
			}
			log, hook := logtest.NewNullLogger()
			log.SetLevel(logrus.WarnLevel)
			s = start(t, embedded.Options{StoreDir: dir, Logger: log})
			js = connect(t, s)
			c, err := js.CreateOrUpdateConsumer(t.Context(), "a", config)
			if err != nil {
				t.Fatal(err)
			}
			m, err := c.Next()
			if err != nil || string(m.Data()) != "x" {
				t.Fatalf("got %v, %v, want the message", m, err)
			}
			if last := hook.LastEntry(); torn != "" && (last == nil || !strings.Contains(last.Message, "could not be read")) {
				t.Fatalf("got %v in the log, want the consumer's name", last)
			}
		})
	}
}

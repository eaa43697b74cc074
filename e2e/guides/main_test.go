// Package guides_test does what the guides in docs say, as it stands there: their programs, their commands, the configuration
// of NATS, and what each of its users may and may not do.
package guides_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/droverhq/drover/e2e/kit"
	"github.com/nats-io/nats-server/v2/server"
)

// binary is cmd/drover, built for this run.
var binary string

func TestMain(m *testing.M) {
	for _, name := range []string{"NATS_URL", "NATS_CONTEXT", "NATS_USER", "NATS_PASSWORD", "NATS_INBOX"} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	os.Exit(kit.Main(m, &binary))
}

// The guides.
const (
	ownWorker = "start/your-own-worker.md"
	yourNATS  = "run/use-the-nats-you-have.md"
	languages = "guides/other-languages.md"
	coming    = "start/coming-from-swf-and-temporal.md"
)

func read(t *testing.T, guide string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", guide))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the code blocks of a guide in one language, in order.
func blocks(t *testing.T, guide, language string) []string {
	t.Helper()
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(read(t, guide), -1) {
		found = append(found, m[1])
	}
	return found
}

// startNATS runs a server with the guide's configuration until the test ends, on a free port and a store of its own.
func startNATS(t *testing.T) (url string) {
	t.Helper()
	conf := blocks(t, yourNATS, "conf")
	if len(conf) != 1 {
		t.Fatalf("got %d configurations, want 1", len(conf))
	}
	return startConf(t, conf[0])
}

// startConf runs a server with a configuration.
func startConf(t *testing.T, conf string) (url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	o.Host, o.Port, o.StoreDir, o.NoSigs, o.NoLog = "127.0.0.1", -1, t.TempDir(), true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server is not ready")
	}
	return s.ClientURL()
}

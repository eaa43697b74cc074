package natsconn

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/internal/poll"
)

// The library keeps the user that a file with a seed was read for first. Who writes the seed of another user there, also one that the server knows,
// reads that the process has to be started again; with the first seed it goes on.
func TestReconnectSaysThatTheNKeyIsAnothers(t *testing.T) {
	o := serverOptions(t)
	var seeds [][]byte
	for range 2 {
		pair, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		public, _ := pair.PublicKey()
		seed, _ := pair.Seed()
		seeds, o.Nkeys = append(seeds, seed), append(o.Nkeys, &server.NkeyUser{Nkey: public})
	}
	srv, stop := start(t, o)
	t.Cleanup(stop)
	file := filepath.Join(t.TempDir(), "seed")
	become := func(seed []byte) {
		t.Helper()
		if err := os.WriteFile(file, seed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	become(seeds[0])
	log, kept := logtest.NewNullLogger()
	c := dial(t, Options{InProcess: srv, NKeyFile: file, Logger: log})
	become(seeds[1])
	if err := c.NATS().ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, 30*time.Second, "the way out is told", func() bool {
		return slices.ContainsFunc(kept.AllEntries(), func(e *logrus.Entry) bool {
			return strings.Contains(e.Message, "cannot connect to NATS again: start this process again to connect as the user whose seed the file holds now")
		})
	})
	become(seeds[0])
	poll.Until(t, 30*time.Second, "connected again", c.Connected)
}

package main

import (
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/server"
)

// A namespace that cannot be looked at, as one without a leader cannot, keeps a server from none of the others.
func TestServeBesideANamespaceThatCannotBeRead(t *testing.T) {
	may := []string{
		"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.CREATE.>", "$JS.API.STREAM.UPDATE.>", "$JS.API.STREAM.MSG.>", "$JS.API.STREAM.PURGE.>",
		"$JS.API.CONSUMER.>", "$JS.API.DIRECT.>", "$JS.ACK.>", "$KV.>", "drover.>", "drover-server.>", "_INBOX.>",
	}
	for _, ns := range []subject.Namespace{"good", "mine"} {
		for _, c := range (&topology.Namespace{Name: ns, Partitions: 1}).Plan("list") {
			may = append(may, "$JS.API.STREAM.INFO."+c.Name)
		}
	}
	srv, url := embeddedtest.Start(t, true, embeddedtest.User{Name: "server", Publish: may, Subscribe: []string{">"}})
	root := embeddedtest.As(t, srv, embeddedtest.Root)
	for _, ns := range []string{"bad", "good"} {
		if _, err := topology.Ensure(t.Context(), root, topology.Options{Namespace: ns, Partitions: 1}); err != nil {
			t.Fatal(err)
		}
	}
	log, _ := listening()
	s := serving(t, server.Options{
		External:  &natsconn.Options{InProcess: srv, User: "server", Password: embeddedtest.Password},
		Namespace: "mine", Partitions: 1, Logger: log,
	})
	poll.Until(t, 20*time.Second, "the good one is served", func() bool {
		r := command("", "start", "greet", "-n", "good", "--nats", url, "--user", embeddedtest.Root, "--password", embeddedtest.Password, "--timeout", "2s")
		return r.code == cli.ExitDone
	})
	s.end(t)
}

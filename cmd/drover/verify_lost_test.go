package main

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/cmd/drover/cli"
)

// A history stream that is gone is told, and those after it are read.
func TestVerifyLostPartition(t *testing.T) {
	nats := embeddedtest.Serve(t, embedded.Options{Port: -1})
	conn := embeddedtest.Connect(t, nats)
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	ns := subject.Namespace("default")
	for i, lost := range []int{1, 0, 2} {
		if _, err := conn.PublishSync(t.Context(), ns.History(2, "w", "r"), nil, []byte("{")); err != nil {
			t.Fatal(err)
		}
		if err := conn.JetStream().DeleteStream(t.Context(), ns.StreamHistory(lost)); err != nil {
			t.Fatal(err)
		}
		r := command("", "verify", "--nats", nats.ClientURL())
		if r.code != cli.ExitFailed || !strings.Contains(r.stdout, ns.StreamHistory(lost)) || !strings.Contains(r.stdout, "on "+cli.Counted(2-i, "partition", "partitions")+":") {
			t.Errorf("without partition %d: got %+v, want exit code 1, the name of the stream and %d partitions", lost, r, 2-i)
		}
		if lost != 2 && !strings.Contains(r.stdout, `"w"`) {
			t.Errorf("without partition %d: got %s, want what is wrong in partition 2", lost, r.stdout)
		}
	}
}

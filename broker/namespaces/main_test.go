package namespaces_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// ensure makes a namespace in memory, of one partition if o says no other number.
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

// history stores a record of a run that has this status after it.
func history(t *testing.T, conn *natsconn.Conn, ns subject.Namespace, wid, status string) {
	t.Helper()
	if _, err := conn.PublishSync(t.Context(), ns.History(1, wid, "r1"), natsconn.Header{schemas.StatusHeader: {status}}, []byte("x")); err != nil {
		t.Fatal(err)
	}
}

// belonging are the streams and buckets of a namespace.
func belonging(t *testing.T, conn *natsconn.Conn, ns subject.Namespace) []string {
	t.Helper()
	l := conn.JetStream().StreamNames(t.Context())
	var all []string
	for name := range l.Name() {
		if strings.Contains(name, "drover-"+string(ns)+"-") {
			all = append(all, name)
		}
	}
	if l.Err() != nil {
		t.Fatal(l.Err())
	}
	return all
}

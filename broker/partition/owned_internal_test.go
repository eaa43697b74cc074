package partition

import (
	"io"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/topology"
)

// owned is the one partition of a namespace with its lease, and without a broker that runs it. A test of what an owner does calls it.
func owned(t *testing.T) (*Partition, *claims.Lease) {
	t.Helper()
	conn := embeddedtest.Dial(t)
	n, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	held, err := claims.Open(conn, n.Name.BucketClaims(), claims.Options{Node: "a"})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := held.TryAcquire(t.Context(), claims.Partition(0))
	if err != nil {
		t.Fatal(err)
	}
	overdue := logrus.New()
	overdue.SetOutput(io.Discard)
	return New(&env.Env{Conn: conn, NS: n.Name, Options: env.Options{Logger: overdue, Partitions: 1}}, 0, lease), lease
}

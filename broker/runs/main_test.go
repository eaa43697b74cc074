package runs

import (
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// namespace makes the streams of a namespace on a server of its own, and returns a reader of its histories.
func namespace(t testing.TB, partitions int) *Reader {
	t.Helper()
	conn := embeddedtest.Dial(t)
	_, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	return &Reader{
		Conn: conn, Namespace: "default", Partitions: partitions,
		BodyLimit: func() int { return 1 << 20 }, Log: logx.Or(nil),
	}
}

// put stores a message on the subject of a run, and returns its sequence.
func put(t *testing.T, r *Reader, partition int, wid, run string, h natsconn.Header, body []byte) uint64 {
	t.Helper()
	seq, err := r.Conn.PublishSync(t.Context(), r.Namespace.History(partition, wid, run), h, body)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// encoded is a record in the form in which it is stored.
func encoded(t testing.TB, record *schemas.Record) []byte {
	t.Helper()
	body, err := schemas.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

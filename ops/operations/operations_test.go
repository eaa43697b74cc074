package operations_test

import (
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/ops/operations"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/sirupsen/logrus/hooks/test"
)

func TestNote(t *testing.T) {
	server, err := embedded.Start(t.Context(), embedded.Options{DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	conn, err := natsconn.Dial(t.Context(), natsconn.Options{InProcess: server.Conn()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	log, told := test.NewNullLogger()
	l := operations.New(conn, "default", "node-1", log)

	// Without a stream nothing is stored, and the log says so.
	l.Note(t.Context(), ops.Operation{Kind: ops.OperationRecycleSet, Reason: "why"})
	if e := told.LastEntry(); e == nil || e.Data["reason"] != "why" {
		t.Errorf("got %v, want a line of the log that says what could not be noted", e)
	}

	ns, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1, Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	l.Note(t.Context(), ops.Operation{Kind: ops.OperationSlotsMissed, Subject: "a.b *", Count: 3})
	m, err := conn.LastBySubject(t.Context(), ns.Name.StreamOperations(), ns.Name.Operation("slotsMissed"))
	if err != nil {
		t.Fatal(err)
	}
	var got ops.Operation
	if err := schemas.Unmarshal(m.Data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Subject != "a.b *" || got.Count != 3 || got.Identity != "node-1" || got.At == 0 {
		t.Errorf("got %+v, want what was noted, with the node and the time", got)
	}
}

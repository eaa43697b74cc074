package broker_test

import (
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// A first fence with padding, as earlier versions have written it, is read by the next owner, who writes none.
func TestFenceWithPaddingIsRead(t *testing.T) {
	const ns = subject.Namespace("default")
	server := embeddedtest.Serve(t, embedded.Options{DontListen: true})
	conn := embeddedtest.Connect(t, server)
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1, Memory: true}); err != nil {
		t.Fatal(err)
	}
	body, err := schemas.Marshal(&schemas.Fence{Claim: 1, Owner: "node", Padding: make([]byte, 64<<10)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.PublishSync(t.Context(), ns.Fence(0), nil, body); err != nil {
		t.Fatal(err)
	}
	if _, err := handover.Fence(t.Context(), conn, ns, 0, 2, "node"); err != nil {
		t.Fatal(err)
	}
	m, err := conn.LastBySubject(t.Context(), ns.StreamHistory(0), ns.Fence(0))
	if err != nil {
		t.Fatal(err)
	}
	var f schemas.Fence
	if err := schemas.Unmarshal(m.Data, &f); err != nil || f.Claim != 2 || len(f.Padding) > 0 {
		t.Errorf("got claim %d with a padding of %d bytes (%v), want claim 2 and none", f.Claim, len(f.Padding), err)
	}
}

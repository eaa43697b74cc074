package audit

import (
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// What the leader has counts, whatever the replica that was read has: an alarm that was not read is added, one that was is not
// asked for again, and what is no alarm is left to the timer worker.
func TestAlarmsOfTheLeaderAreAdded(t *testing.T) {
	defer embedded.RegisterTicker()() // outside of all bubbles
	virtual.Run(t, func(t *testing.T) {
		conn := embeddedtest.Dial(t)
		n, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		ns := n.Name
		seqs := map[string]uint64{}
		for i, wid := range []string{"read", "not-read"} {
			body, err := schemas.Marshal(&schemas.Alarm{V: schemas.Version, Run: "1", Due: schemas.Timestamp(i + 5)})
			if err != nil {
				t.Fatal(err)
			}
			if seqs[wid], err = conn.PublishSync(t.Context(), ns.Alarm(0, wid, "1"), nil, body); err != nil {
				t.Fatal(err)
			}
		}
		v := newView(&Auditor{ns: ns, o: Options{Conn: conn}}, true)
		was := armed{seq: 77, due: 3}
		read, notRead := v.key("read", "1"), v.key("not-read", "1")
		v.alarms = map[uint64]armed{read: was}
		if err := v.addSubjects(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		want := armed{seq: seqs["not-read"], due: 6}
		if got := v.alarms[notRead]; got != want || v.alarms[read] != was || len(v.alarms) != 2 {
			t.Errorf("got %+v, want %+v and the one that was read", v.alarms, want)
		}
	})
}

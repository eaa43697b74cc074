//go:build linux

package damage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/e2e/load"
	"github.com/droverhq/drover/e2e/power"
	"github.com/droverhq/drover/internal/poll"
)

// In profile single the server acknowledges tasks and alarms before it writes them. After kill -9 every one of them may be
// gone, and each open run gets its own again: all complete. After a planned stop nothing is gone and nothing is repeated.
func TestKilledSingleRepeatsTasksAndAlarms(t *testing.T) { // P-8
	m := newMachine(t, "single", "")
	m.start()
	defer m.deciders()()
	p := newPressure(m, false)
	ctx, cancel := bounded(t)
	defer cancel()
	// These sleep when their first activity has ended.
	sleepers := make([]load.Input, 10)
	for i := range sleepers {
		sleepers[i] = load.Input{Steps: 2, Timer: 12_000}
	}
	stop := m.activities()
	p.begin(ctx, "asleep", sleepers)
	poll.Until(m.t, patience, "every sleeper to have its alarm", func() bool { return m.messages(p, "alarms") == len(sleepers) })
	stop()
	// And these have a task that nobody takes.
	waiting := make([]load.Input, 10)
	for i := range waiting {
		waiting[i] = load.Input{Steps: 1}
	}
	p.begin(ctx, "waiting", waiting)
	poll.Until(m.t, patience, "every task and alarm to be stored", func() bool {
		return m.messages(p, "tasks") == len(waiting) && m.messages(p, "alarms") == len(sleepers)+len(waiting)
	})

	m.server.Stop(patience)
	m.start()
	<-time.After(time.Second)
	if tasks, alarms := m.messages(p, "tasks"), m.messages(p, "alarms"); tasks != len(waiting) || alarms != len(sleepers)+len(waiting) {
		t.Errorf("got %d tasks and %d alarms after a planned stop, want %d and %d", tasks, alarms, len(waiting), len(sleepers)+len(waiting))
	}

	m.server.Kill()
	for _, pattern := range []string{"drover-default-tasks-*", "drover-default-alarms-*"} {
		blocks, err := filepath.Glob(filepath.Join(m.store, "jetstream", "$G", "streams", pattern, "msgs", "*"))
		if err != nil || len(blocks) == 0 {
			t.Fatalf("got %v, %v, want the blocks of %s", blocks, err, pattern)
		}
		for _, b := range blocks {
			if err := os.Remove(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.start()
	poll.Until(m.t, patience, "every task to be there again", func() bool { return m.messages(p, "tasks") == len(waiting) })
	defer m.activities()()
	p.End()
	if v := m.verify("--idle"); !v.OK || v.Open != 0 {
		t.Fatalf("drover verify: %d open, %+v", v.Open, v.Violations)
	}
	m.nothingLost(p)
}

// messages counts what the streams of a kind hold.
func (m *machine) messages(p *pressure, kind string) (n int) {
	m.t.Helper()
	ctx, cancel := bounded(m.t)
	defer cancel()
	l := p.js.ListStreams(ctx)
	for s := range l.Info() {
		if strings.HasPrefix(s.Config.Name, "drover-default-"+kind+"-") {
			n += int(s.State.Msgs)
		}
	}
	if l.Err() != nil {
		m.t.Fatal(l.Err())
	}
	return n
}

// Records go in groups under load. A power cut in the middle of one leaves some of its records or none, each whole, and loses none
// that was acknowledged; kill -9 may leave all of them. Either way the next owner goes on from what is there.
func TestPowerCutInGroups(t *testing.T) {
	o := newOutage(t, "single", power.Journal)
	o.start()
	defer o.workers()()
	p := newPressure(o.machine, false)
	for n := range *cuts {
		end := o.cut
		if n%3 == 2 {
			end = o.server.Kill
		}
		o.round(fmt.Sprintf("group-%d", n), p, mixed(o.dice, 60, 200), end)
	}
	o.nothingLost(p)
	records, batches := o.batches(p.js)
	if batches == 0 {
		t.Error("no record was stored in a group")
	}
	t.Logf("%d cuts, %d syncs: %d records in %d groups, slowest start %v", *cuts, o.disk.Syncs(), records, batches, o.slow.Round(time.Millisecond))
}

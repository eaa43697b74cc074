//go:build linux

package damage

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/e2e/load"
	"github.com/droverhq/drover/e2e/power"
)

var (
	cuts     = flag.Int("cuts", 3, "power cuts of each test that cuts the power")
	cutsSeed = flag.Uint64("cuts.seed", 0, "their seed (default a new one, which is printed)")
)

// outage is a machine on a disk whose power is cut again and again under load.
type outage struct {
	*machine
	disk  *power.Disk
	dice  *rand.Rand
	cuts  []powerCut
	slow  time.Duration // the slowest start after a cut
	ended time.Duration // the slowest end of all that was open at a cut
}

// powerCut is from when nothing was written any more until no acknowledgement from before could be noted any more. By its logs
// some 25 s lay between the two once, on a busy machine.
type powerCut struct{ frozen, over time.Time }

func newOutage(t *testing.T, profile string, mode power.Mode) *outage {
	t.Helper()
	needRoot(t)
	seed := cmp.Or(*cutsSeed, uint64(time.Now().UnixNano()))
	t.Logf("-cuts=%d -cuts.seed=%d", *cuts, seed)
	dir := t.TempDir()
	d, err := power.Mount(dir, power.Options{Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return &outage{machine: newMachine(t, profile, filepath.Join(dir, "store")), disk: d, dice: rand.New(rand.NewPCG(seed, 0))}
}

// cut ends the power: nothing is written from here on, and the server is gone.
func (o *outage) cut() {
	o.t.Helper()
	stages := o.stages()
	o.disk.Freeze()
	frozen := time.Now()
	o.server.Kill()
	forget(o.t, stages)
	if err := o.disk.Cut(o.dice); err != nil {
		o.t.Fatal(err)
	}
	o.cuts = append(o.cuts, powerCut{frozen, time.Now()})
}

func (o *outage) again() {
	o.t.Helper()
	began := time.Now()
	o.start()
	o.slow = max(o.slow, time.Since(began))
}

// round begins a load, ends the server in the middle of it, and wants all of it to end well when the server is back.
func (o *outage) round(name string, p *pressure, loads []load.Input, end func()) {
	o.t.Helper()
	ctx, cancel := bounded(o.t)
	defer cancel()
	total := p.begin(ctx, name, loads)
	p.Reach(ctx, 1+o.dice.IntN(total*3/4))
	end()
	began := time.Now()
	o.again()
	p.End()
	o.ended = max(o.ended, time.Since(began))
	if v := o.verify(); !v.OK {
		o.t.Fatalf("%s: drover verify: %+v", name, v.Violations)
	}
}

// In profile single nothing that was acknowledged is missing after a power cut: starts, signals by the API and by plain
// publish, ends. Every run goes on and completes, and every history is sound.
func TestPowerCutSingle(t *testing.T) {
	o := newOutage(t, "single", power.Journal)
	o.start()
	defer o.workers()()
	p := newPressure(o.machine, false)
	for n := range *cuts {
		loads := mixed(o.dice, 8, 200)
		for i := range loads {
			if i%4 == 1 {
				loads[i].Pad = strings.Repeat("x", 200<<10) // so that many cuts see new files of messages
			}
		}
		o.round(fmt.Sprintf("cut-%d", n), p, loads, o.cut)
	}
	o.nothingLost(p)
	t.Logf("%d cuts, %d syncs: slowest start %v, slowest end of what was open %v", len(o.cuts), o.disk.Syncs(), o.slow.Round(time.Millisecond), o.ended.Round(time.Millisecond))
}

// nothingLost checks all that was acknowledged against what is stored.
func (m *machine) nothingLost(p *pressure) {
	m.t.Helper()
	a := m.read()
	for _, s := range p.starts {
		if n := a.closes[s.run]; n != 1 {
			m.t.Errorf("%s run %s has ended %d times, want once", s.id, s.run, n)
		}
	}
	// A run that was begun or ended again after a cut would look whole: what was acknowledged is what stands there.
	const clocks = 100 * time.Millisecond
	for _, s := range p.starts {
		if began := a.begun[s.run]; began.After(s.at.Add(clocks)) {
			m.t.Errorf("%s run %s was acknowledged %v before the start in its history", s.id, s.run, began.Sub(s.at))
		}
	}
	for _, s := range p.ends {
		if ended := a.closed[s.run]; ended.After(s.at.Add(clocks)) {
			m.t.Errorf("the end of %s run %s was acknowledged %v before the one in its history", s.id, s.run, ended.Sub(s.at))
		}
	}
	for _, s := range p.signals {
		if n := a.signals[s.id][s.body] + a.dead[s.body]; n != 1 {
			m.t.Errorf("%s was acknowledged: it is in the history %d times and in the dead letters %d times, want one of them once", s.body, a.signals[s.id][s.body], a.dead[s.body])
		}
	}
	for _, s := range p.unknown {
		if n := a.signals[s.id][s.body] + a.dead[s.body]; n > 1 {
			m.t.Errorf("%s was not acknowledged: it is stored %d times, want at most once", s.body, n)
		}
	}
	m.t.Logf("acknowledged: %d starts, %d signals, %d ends; %d signals unknown", len(p.starts), len(p.signals), len(p.ends), len(p.unknown))
}

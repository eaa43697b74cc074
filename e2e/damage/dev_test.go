//go:build linux

package damage

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/e2e/power"
)

// lossWindow is how much older than the cut something may be that profile dev has lost: its sync interval is 1 s, the rest
// is for a busy machine.
const lossWindow = 5 * time.Second

// In profile dev a power cut may take what was acknowledged in the last sync interval, and nothing else goes wrong: the server
// starts, no history is forked or doubled, no signal counts as consumed that no history has, and every run that is there
// completes.
func TestPowerCutDev(t *testing.T) {
	o := newOutage(t, "dev", power.Journal)
	o.start()
	defer o.workers()()
	p := newPressure(o.machine, true)
	for n := range *cuts {
		ctx, cancel := bounded(t)
		// Some of what was acknowledged is to be synced, and some is not.
		p.begin(ctx, fmt.Sprintf("early-%d", n), mixed(o.dice, 4, 1500))
		<-time.After(time.Duration(o.dice.IntN(1500)) * time.Millisecond)
		o.round(fmt.Sprintf("late-%d", n), p, mixed(o.dice, 6, 200), o.cut)
		cancel()
	}
	// What ended may have lost its end.
	ctx, cancel := bounded(t)
	defer cancel()
	for id, l := range p.loads {
		p.Go(func() { p.push(ctx, id, l) })
	}
	p.End()
	if v := o.verify("--idle"); !v.OK || v.Open != 0 {
		t.Fatalf("in the end: drover verify: %d open, %+v", v.Open, v.Violations)
	}
	o.littleLost(p)
	t.Logf("%d cuts, %d syncs: slowest start %v, slowest end of what was open %v", len(o.cuts), o.disk.Syncs(), o.slow.Round(time.Millisecond), o.ended.Round(time.Millisecond))
}

// littleLost checks that nothing is doubled, and that what is lost was acknowledged shortly before a cut.
func (o *outage) littleLost(p *pressure) {
	o.t.Helper()
	a := o.read()
	var oldest time.Duration
	judge := func(what string, when ack, n int) (lost bool) {
		if n > 1 {
			o.t.Errorf("%s of %s run %s is stored %d times, want at most once", what, when.id, when.run, n)
		}
		if n > 0 {
			return false
		}
		age := o.age(when.at)
		if age < 0 || age > lossWindow {
			o.t.Errorf("%s of %s run %s is lost: it was acknowledged %v before the next cut, want less than %v", what, when.id, when.run, age, lossWindow)
		}
		oldest = max(oldest, age)
		return true
	}
	starts, signals, ends := 0, 0, 0
	seen := map[string]bool{}
	for _, s := range p.starts {
		if n := a.closes[s.run]; !seen[s.run] && judge("the start", s, n) {
			starts++
		}
		seen[s.run] = true
	}
	for _, s := range p.signals {
		stored, buried := a.signals[s.id][s.body], a.dead[s.body]
		if judge(fmt.Sprintf("signal %q (%d in histories, %d as dead letters)", s.body, stored, buried), s, stored+buried) {
			signals++
		}
	}
	for _, s := range p.ends {
		if judge("the end", s, a.closes[s.run]) {
			ends++
		}
	}
	for _, s := range p.unknown {
		if n := a.signals[s.id][s.body] + a.dead[s.body]; n > 1 {
			o.t.Errorf("%s was not acknowledged: it is stored %d times, want at most once", s.body, n)
		}
	}
	o.t.Logf("acknowledged: %d starts, %d signals, %d ends; %d signals unknown; lost: %d starts, %d signals, %d ends, the oldest %v before the cut; dead letters: %d",
		len(p.starts), len(p.signals), len(p.ends), len(p.unknown), starts, signals, ends, oldest.Round(time.Millisecond), len(a.dead))
}

// age is how long before the next cut something was; negative if there is none.
func (o *outage) age(at time.Time) time.Duration {
	for _, c := range o.cuts {
		if at.Before(c.over) {
			return max(c.frozen.Sub(at), 0)
		}
	}
	return -1
}

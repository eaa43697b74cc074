package cache_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// holding returns a partition without a server that has runs of these workflow ids in memory, used
// in this order.
func holding(t *testing.T, o env.Options, status schemas.Status, wids ...string) *partition {
	t.Helper()
	p := newPartition(t, env.Owner{Env: env.New(o)})
	for n, wid := range wids {
		p.Add(&actor.Run{
			WorkflowID: wid, End: runs.End{Sequence: uint64(1 + n)}, State: &execution.State{
				WorkflowID: wid, Run: wid + "-1", Status: status, Start: &schemas.WorkflowStarted{},
			},
		})
	}
	return p
}

// inMemory are the workflow ids in memory, sorted.
func (p *partition) inMemory() []string {
	var all []string
	for r := range p.All() {
		all = append(all, r.WorkflowID)
	}
	slices.Sort(all)
	return all
}

// Above the bound the least recently used runs are forgotten, and those that are in the middle of
// something stay, whatever the bound. Of an open run it stays known that there is one.
func TestLeastRecentlyUsedIsEvicted(t *testing.T) {
	o := options()
	o.CachedRuns = 3
	p := holding(t, o, schemas.StatusOpen, "a", "busy", "c", "d", "e")
	p.InMemory("busy").Owing = 1
	p.Get("a")
	p.Evict()
	if got, want := p.inMemory(), []string{"a", "busy", "e"}; !slices.Equal(got, want) {
		t.Errorf("in memory are %q, want %q", got, want)
	}
	if p.NothingKnown("c") || !p.NothingKnown("never") {
		t.Error("of c, which is open, nothing is known; or something of who never was")
	}
	if want := []string{"c", "d"}; !slices.Equal(p.recall, want) {
		t.Errorf("the recalls of %q have ended, want those of %q", p.recall, want)
	}
	for _, wid := range []string{"a", "e"} {
		p.InMemory(wid).Owing = 1
	}
	p.Add(&actor.Run{WorkflowID: "f", Owing: 1})
	if p.Evict(); p.Len() != 4 {
		t.Errorf("in memory are %q; none of the four is idle", p.inMemory())
	}
}

// Idle runs are forgotten after a while, sooner where there are many. What was used just now stays,
// what is in the middle of something, and a closed run that was retired.
func TestIdleRunsArePassivated(t *testing.T) { // I15
	var wids []string
	for n := range 40 {
		wids = append(wids, fmt.Sprintf("w%02d", n))
	}
	o := options()
	o.CachedRuns = 80
	p := holding(t, o, schemas.StatusOpen, wids...)
	p.InMemory("w00").Owing = 1
	closed := p.InMemory("w01")
	closed.State.Status = schemas.StatusCompleted
	p.Retire(closed)
	if p.rest(0); p.Len() != len(wids) {
		t.Errorf("%d of %d runs are in memory after no time", p.Len(), len(wids))
	}
	p.rest(5 * time.Second)
	if n := p.Len(); n < 3 || n == len(wids) {
		t.Errorf("%d of %d runs are in memory after a few seconds, want a few", n, len(wids))
	}
	p.rest(time.Minute)
	p.Add(&actor.Run{WorkflowID: "new"})
	p.rest(0)
	if got, want := p.inMemory(), []string{"new", "w00", "w01"}; !slices.Equal(got, want) {
		t.Errorf("in memory after a minute are %q, want %q", got, want)
	}
}

// Closed runs stay for those who ask how they ended, the latest of them. One that has begun anew
// meanwhile is no closed run, and one that is in the middle of something stays until it is not.
func TestLatestClosedRunsStay(t *testing.T) {
	var wids []string
	for n := range 2000 {
		wids = append(wids, fmt.Sprintf("w%04d", n))
	}
	p := holding(t, options(), schemas.StatusCompleted, wids...)
	for n, wid := range wids {
		r := p.InMemory(wid)
		p.Retire(r)
		switch n {
		case 0:
			r.State.Status = schemas.StatusOpen
		case 1:
			r.Owing = 1
		}
	}
	got := p.inMemory()
	for range wids { // it counts once
		p.Retire(p.InMemory(wids[len(wids)-1]))
	}
	if p.Len() != len(got) {
		t.Errorf("%d of %d runs are left after one was retired again", p.Len(), len(got))
	}
	if len(got) < 3 || !slices.Equal(got[:2], wids[:2]) {
		t.Fatalf("in memory are %q; want the first two, which are not idle and closed", got)
	}
	latest := wids[len(wids)-len(got)+2:]
	if len(got) > 1000 || !slices.Equal(got[2:], latest) {
		t.Errorf("of %d closed runs %d are in memory, %q; want the latest, not half of them",
			len(wids), len(got), got[2:])
	}
	if forgotten := wids[2]; !p.NothingKnown(forgotten) {
		t.Errorf("something is known of %s, which is closed and forgotten", forgotten)
	}
}

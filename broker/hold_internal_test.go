package broker

import (
	"fmt"
	"slices"
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// Each decision in a row that comes too late costs its type more of those that are waited for, up to 64; one that comes in
// time ends that. Other types do not pay for it.
func TestPatienceWithSlowDeciders(t *testing.T) { // ADR 0020
	p := &partition{b: &Broker{}, paces: [holdLists]map[string]*pace{{}, {}}}
	p.b.recordLimit.Store(1 << 20)
	slow := &run{state: &execution.State{Start: &schemas.WorkflowStarted{WorkflowType: "slow"}}}
	other := &run{state: &execution.State{Start: &schemas.WorkflowStarted{WorkflowType: "other"}}}
	skipped := func() (n int) {
		for ; !p.soon(slow); n++ {
		}
		return n
	}
	var got []int
	for range 8 {
		p.paced(slow, false)
		got = append(got, skipped())
	}
	if want := []int{1, 4, 8, 16, 32, 64, 64, 64}; !slices.Equal(got, want) {
		t.Errorf("got %v decisions that are not waited for, want %v", got, want)
	}
	p.paced(slow, false)
	if !p.soon(other) {
		t.Error("a type pays for another")
	}
	rung := &run{state: slow.state, holdList: forRings, pending: []group{{rung: true}}}
	if !p.soon(rung) {
		t.Error("what alarms have caused pays for what did not wait for so long")
	}
	if p.paced(rung, false); p.soon(rung) {
		t.Error("what alarms have caused pays nothing for a decision that came too late even for it")
	}
	p.paced(slow, true)
	if n := skipped(); n != 0 {
		t.Errorf("behind a decision in time %d are not waited for, want 0", n)
	}
}

// A name that is used once, as by those who name their types after releases or customers, is not kept for ever.
func TestPaceOfTypesIsForgotten(t *testing.T) {
	p := &partition{paces: [holdLists]map[string]*pace{{}, {}}, aheads: map[aheadType]*pace{}}
	for n := range 3 * mostPaces {
		typ := fmt.Sprint("once-", n)
		r := &run{state: &execution.State{Start: &schemas.WorkflowStarted{WorkflowType: typ}}}
		p.paced(r, false)
		p.notedAhead(r, &execution.Activity{Scheduled: &schemas.ActivityScheduled{ActivityType: typ}}, false)
		p.learn(typ, 1)
		if late, vain, quick := len(p.paces[forOthers]), len(p.aheads), len(p.offers.hastes); late > mostPaces || vain > mostPaces || quick > mostHastes {
			t.Fatalf("behind %d types %d are known to be late, %d to be decided ahead for in vain, and %d to be quick", n+1, late, vain, quick)
		}
	}
	if !skipped(p.paces[forOthers][fmt.Sprint("once-", 3*mostPaces-1)]) || !p.offers.hastes[fmt.Sprint("once-", 3*mostPaces-1)].quick {
		t.Error("the last type is not known")
	}
}

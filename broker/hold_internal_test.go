package broker

import (
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

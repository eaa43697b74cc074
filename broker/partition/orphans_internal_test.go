package partition

import (
	"context"
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/broker/partition/intake"
)

// A signal that waits for the end of the inbox keeps what it has of its log's allowance until it is judged. (E8)
func TestOrphansKeepTheirAllowance(t *testing.T) {
	p := &Partition{Owner: env.Owner{Env: &env.Env{}}, parts: parts{handover: &handover.Handover{}}}
	p.keep(&actor.Run{WorkflowID: "o"})
	p.intake.Logs = [2]*intake.Log{{Number: inboxLog}, {Number: signalLog}}
	p.intake.Early.Ask()
	p.Env.RecordLimit.Store(1 << 30)
	log := p.intake.Logs[signalLog]
	ended, end := context.WithCancel(t.Context())
	end()
	body := make([]byte, 64<<20) // more than all that is allowed
	log.Allowance.Take(ended, len(body))
	e := &actor.Message{WorkflowID: "o", Event: execution.Signal{Name: "s", Input: body}, Log: signalLog, Body: body, Allowed: &log.Allowance}
	p.takeMessage(log, &actor.Opened{Message: e, Seq: 1})
	if p.intake.Early.Len() != 1 || !e.Kept {
		t.Fatalf("%d wait, want the signal", p.intake.Early.Len())
	}
	if log.Allowance.Take(ended, 1) {
		t.Error("one more was read")
	}
	for _, e := range p.takeOrphans("o") {
		e.Judged()
		e.Judged()
	}
	if !log.Allowance.Take(ended, 1) {
		t.Error("none is read when there is room again")
	}
}

package partition

import (
	"errors"
	"testing"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/internal/virtual"
)

// A process that was stopped for longer than its claims last may read what it was asked meanwhile before it is told of the end of its
// claims. It answers nothing from memory then, not even that something is refused (P-16).
func TestOwnerWithoutClaimAnswersNothing(t *testing.T) {
	defer embedded.RegisterTicker()() // outside of all bubbles
	virtual.Run(t, func(t *testing.T) {
		p, lease := owned(t)
		var stopped error
		p.stop = func(cause error) { stopped = cause }
		describe := natsconn.Msg{Reply: "answer", Header: natsconn.Header{actor.VerbHeader: {"describe"}}, Data: []byte(`{"workflowId":"w"}`)}
		taken := p.Serve(describe)
		queued := p.Loop.Take(nil)
		if !taken || len(queued) != 1 {
			t.Fatalf("a request to an owner with a claim was not taken")
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		queued[0]()
		if p.cache.Len() > 0 || !errors.Is(stopped, claims.ErrLost) {
			t.Errorf("a request that was read after the end of the claim has %d runs looked at, and the owner stopped for %v; want none, and %v", p.cache.Len(), stopped, claims.ErrLost)
		}
		if p.Serve(describe) {
			t.Error("an owner without a claim has taken a request; want it left to the next owner")
		}
		p.queue(&actor.Run{WorkflowID: "w"}, actor.Group{Answers: []func(){func() { t.Error("an owner without a claim has answered from memory") }}})
	})
}

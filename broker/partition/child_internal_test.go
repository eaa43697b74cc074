package partition

import (
	"testing"
	"testing/synctest"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/cache"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// The start of a child is read again after a take-over: its parent is told how it has ended only if the history says so by then.
func TestAnswerToAStartThatIsReadAgain(t *testing.T) { // P-1, P-5
	defer embedded.RegisterTicker()() // outside of all bubbles
	virtual.Run(t, func(t *testing.T) {
		p, lease := owned(t)
		defer func() { _ = lease.Release(t.Context()) }()
		var err error
		if p.outside, err = p.Env.Conn.NewOutbox(natsconn.OutboxOptions{}); err != nil {
			t.Fatal(err)
		}
		defer p.outside.Close()
		q := &schemas.StartRequest{WorkflowID: "kid", Run: "r2", Origin: &schemas.StartOrigin{Parent: &schemas.Execution{WorkflowID: "o", Run: "r1"}, ParentScheduledEventID: 5}}
		for _, tc := range []struct {
			name   string
			change func(*actor.Run)
			want   schemas.Status
		}{
			{"it is open", func(r *actor.Run) { r.State.Status, r.State.Close = schemas.StatusOpen, nil }, schemas.StatusOpen},
			{"its end is in the history", func(*actor.Run) {}, schemas.StatusCompleted},
			{"its end waits to be written", func(r *actor.Run) { r.Pending = []actor.Group{{}} }, schemas.StatusOpen},
			{"its end is on its way", func(r *actor.Run) { r.Inflight = &actor.Commit{} }, schemas.StatusOpen},
		} {
			r := openRun()
			r.State.Start.ParentWorkflowExecution, r.State.Start.ParentScheduledEventID = q.Origin.Parent, 5
			r.State.Status, r.State.Close = schemas.StatusCompleted, &schemas.Event{Attributes: &schemas.WorkflowSuccess{}}
			tc.change(r)
			p.exchange.AnswerChildLate(r, &actor.Message{Completion: &watermark.Completion{}}, q)
			synctest.Wait()
			m, err := p.Env.Conn.LastBySubject(t.Context(), p.Env.NS.StreamIn(0), p.Env.NS.In(0, "o", actor.KindChild))
			var got schemas.ChildReport
			if err == nil {
				err = schemas.Unmarshal(m.Data, &got)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != tc.want {
				t.Errorf("%s: the parent is told %q, want %q", tc.name, got.Status, tc.want)
			}
		}
	})
}

func openRun() *actor.Run {
	return &actor.Run{WorkflowID: "o", End: runs.End{Sequence: 40}, State: &execution.State{Run: "r2", Start: &schemas.WorkflowStarted{WorkflowType: "order"}, Status: schemas.StatusOpen}}
}

// keep gives the partition a cache with some runs.
func (p *Partition) keep(all ...*actor.Run) {
	p.cache = cache.New(host{p}, p.Owner, &p.deadlines)
	for _, r := range all {
		p.cache.Add(r)
	}
}

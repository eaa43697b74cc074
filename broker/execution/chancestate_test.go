package execution

import (
	"fmt"

	"github.com/droverhq/drover/schemas"
)

func (g *game) stateDecision(id string) schemas.DecisionAttributes {
	key, scope := pick(g.d, id, "lock-"+id, "lock-"+id), pick(g.d, "", "s")
	switch g.d.roll(4) {
	case 0:
		return &schemas.GetState{Key: key, Scope: scope}
	case 1:
		return &schemas.ClearState{Key: key, Scope: scope}
	}
	require := pick(g.d, "", "", `{"when":"absent"}`, `{"any":[{"when":"absent"},{"equals":"order"}]}`, `{"when":`)
	return &schemas.SetState{Key: key, Scope: scope, Value: pick(g.d, schemas.Text(`"order"`), schemas.Text("run.1"), schemas.Text("1")), Require: schemas.Text(require)}
}

// stateNews is an answer about a state key: to a request that is open, or was, or never.
func (g *game) stateNews() Message {
	m := Answered{Asked: Asked{Run: pick(g.d, "run.1", "run.1", "run.9"), EventID: int64(g.d.roll(60))}, Revision: uint64(g.d.roll(3)), Value: pick(g.d, nil, schemas.Text("1"))}
	if open := g.lived.OpenRequests(); len(open) > 0 && g.d.roll(6) > 0 {
		m.Asked.EventID = open[g.d.roll(len(open))].EventID
	}
	if g.d.roll(3) == 0 {
		m.Cause = schemas.CauseRequirement
	}
	return m
}

// checkAsk: what is asked stands in the state, unless the run ends in the same step.
func (g *game) checkAsk(e AskState) error {
	if q := g.lived.Requests[e.ScheduledID]; q == nil && !g.lived.Closed() {
		return fmt.Errorf("asks for event %d, which is no open request", e.ScheduledID)
	}
	return nil
}

// checkRequests: each request that tries to take a lock has a lock that waits for it, and each such lock a request.
func (g *game) checkRequests() error {
	if g.lived.Closed() {
		if len(g.lived.Requests) > 0 {
			return fmt.Errorf("a closed run has requests: %v", g.lived.Requests)
		}
		return nil
	}
	for _, q := range g.lived.OpenRequests() {
		lock, takes := q.Takes()
		l := g.lived.LockOf(schemas.LockKey(q.Request.Scope, lock), Asked{Run: "run.1", EventID: q.EventID})
		if takes && (l == nil || !l.Try || !l.Waits()) {
			return fmt.Errorf("event %d tries to take a lock, which is %+v", q.EventID, l)
		}
	}
	for _, l := range g.lived.OpenLocks() {
		if l.Try && (!l.Waits() || g.lived.Requests[l.EventID] == nil) {
			return fmt.Errorf("%+v is tried, and nobody asked", l)
		}
	}
	if n := len(g.lived.Requests); n > g.c.OpenStates {
		return fmt.Errorf("%d requests are open, want at most %d", n, g.c.OpenStates)
	}
	return nil
}

package execution

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/schemas"
)

// keys are the locks of a family: the workflow that holds each, and the last fence.
type keys struct {
	holder map[string]string
	fence  uint64
}

// lockDecisions draws what a decider wants of locks. Few names meet often.
func (g *familyGame) lockDecisions(id string) schemas.DecisionAttributes {
	name := rapid.SampledFrom([]string{"L", "M"}).Draw(g.T, "lock")
	switch rapid.IntRange(0, 4).Draw(g.T, "wants") {
	case 0:
		return &schemas.ReleaseLock{Lock: name}
	case 1:
		return setKey(schemas.LockState(name), `"`+id+`"`, "")
	case 2:
		return &schemas.ClearState{Key: schemas.LockState(name)}
	}
	return &schemas.AcquireLock{Lock: name}
}

// lockNews tells a run of a lock that it has or has asked for.
func (g *familyGame) lockNews(s *State) {
	locks := s.OpenLocks()
	if len(locks) == 0 {
		return
	}
	l := rapid.SampledFrom(locks).Draw(g.T, "lock")
	key := l.Key()
	switch holder := g.locks.holder[key]; {
	case l.Waits() && holder != "":
		g.step(s, Denied{Key: key, Asked: l.Asked(), Cause: schemas.CauseRequirement, Details: "it is taken"})
	case l.Waits():
		g.locks.fence++
		g.locks.holder[key] = s.WorkflowID
		g.step(s, Granted{Key: key, Asked: l.Asked(), Place: schemas.LockPlace{WorkflowID: s.WorkflowID, Run: l.Run, EventID: l.EventID, Fence: g.locks.fence}})
	case rapid.Bool().Draw(g.T, "lost"):
		delete(g.locks.holder, key)
		g.step(s, Lost{Key: key, Asked: l.Asked(), Cause: schemas.CauseLeaseExpired})
	default:
		q := BreakLock{Request: &schemas.ExecutionRequest{Lock: l.Lock, RequestID: fmt.Sprint("q", g.n), Reason: "stuck"}}
		g.step(s, q)
		g.step(s, q)
	}
}

// leave performs a LeaveLock.
func (k *keys) leave(s *State, e LeaveLock) {
	if key := schemas.LockKey(e.Scope, e.Lock); k.holder[key] == s.WorkflowID {
		delete(k.holder, key)
	}
}

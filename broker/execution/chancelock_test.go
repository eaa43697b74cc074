package execution

import (
	"fmt"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// lockNews is what an owner tells a run of its locks, or an operator asks: of one that the run has, or of one that it had, or
// never asked for.
func (g *game) lockNews() Message {
	key, asked := schemas.LockKey("", "a"), Asked{Run: "run.1", EventID: int64(g.d.roll(60))}
	request := &schemas.ExecutionRequest{Lock: "a", RequestID: pick(g.d, "", "l1", "l2"), Reason: "stuck"}
	lease := schemas.Duration(0)
	if open := g.lived.OpenLocks(); len(open) > 0 && g.d.roll(6) > 0 {
		l := open[g.d.roll(len(open))]
		key, asked, request.Lock, request.Scope, lease = l.Key(), l.Asked(), l.Lock, l.Scope, max(l.Lease, 0)
	}
	g.fence++
	place := schemas.LockPlace{WorkflowID: "order", Run: asked.Run, EventID: asked.EventID, Fence: g.fence, Since: g.now, Lease: lease}
	switch g.d.roll(7) {
	case 0:
		return Denied{Key: key, Asked: asked, Cause: schemas.CauseLockQueue, Details: "full"}
	case 1:
		return Lost{Key: key, Asked: asked, Cause: schemas.CauseLockLost, Reason: "gone"}
	case 2:
		return BreakLock{Request: request}
	case 3:
		place.WorkflowID, place.Run, place.EventID = "parent", "r", 4
	}
	return Granted{Key: key, Asked: asked, Place: place}
}

// checkLock: what is asked for stands in the state, unless it is given back in the same step; and what is given back does not.
func (g *game) checkLock(e Effect, all []Effect) error {
	switch e := e.(type) {
	case EnterLock:
		left := slices.ContainsFunc(of[LeaveLock](all), func(x LeaveLock) bool { return x.Asked == e.Asked })
		if l := g.lived.LockOf(e.Key, e.Asked); l == nil && !left || l != nil && (!l.Waits() || l.By != e.By) {
			return fmt.Errorf("enters %+v, which is %+v", e, l)
		}
	case LeaveLock:
		if l := g.lived.LockOf(schemas.LockKey(e.Scope, e.Lock), e.Asked); l != nil {
			return fmt.Errorf("leaves %+v, which the run still has: %+v", e, l)
		}
	}
	return nil
}

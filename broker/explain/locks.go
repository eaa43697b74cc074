package explain

import (
	"fmt"
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/locks"
	"github.com/droverhq/drover/schemas"
)

// LockName names a lock in a sentence.
func LockName(lock, scope string) string {
	if scope == "" {
		return fmt.Sprintf("lock %q", lock)
	}
	return fmt.Sprintf("lock %q in scope %q", lock, scope)
}

// openLocks tells of each lock that the run waits for: who holds it, since when, and how many are
// before it.
func openLocks(
	s *execution.State, now schemas.Timestamp, lock func(key string) *schemas.LockRecord,
) (waits []wait) {
	for _, l := range s.OpenLocks() {
		if !l.Waits() {
			continue
		}
		text := fmt.Sprintf(
			"%s is to be entered since %s",
			LockName(l.Lock, l.Scope),
			ago(now, l.Since),
		)
		if r := lock(l.Key()); r != nil && len(r.Holders) > 0 {
			h := &r.Holders[0]
			text = fmt.Sprintf(
				"%s is held by workflow %q since %s",
				LockName(l.Lock, l.Scope),
				h.WorkflowID,
				ago(now, h.Since),
			)
			if n := len(r.Holders) - 1; n > 0 {
				text += fmt.Sprintf(" and %d more", n)
			}
			place := schemas.LockPlace{WorkflowID: s.WorkflowID, Run: l.Run, EventID: l.EventID}
			if n := locks.Line(r, &place); n > 1 {
				text += fmt.Sprintf("; %s before this one", count(n-1, "run waits", "runs wait"))
			}
		}
		waits = append(waits, wait{kind: waitLock, text: text})
	}
	return waits
}

// openLocksOf are the locks of a run, as it knows of them.
func openLocksOf(s *execution.State) (open []schemas.OpenLock) {
	for _, l := range s.OpenLocks() {
		open = append(open, schemas.OpenLock{
			Lock: l.Lock, Scope: l.Scope, Fence: l.Fence, Since: l.Since, Expires: l.Expires,
			Holder: l.Holder, Run: l.Run, EventID: l.EventID,
		})
	}
	return slices.Clip(open)
}

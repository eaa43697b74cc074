package checker

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/droverhq/drover/schemas"
)

// unread are the signals of a run that no decider has seen, as far as the next run must repeat
// them: how many there are, and a digest of all of them in their order. Its size does not grow with
// their number.
type unread struct {
	n      int
	sum    [sha256.Size]byte
	others bool // another waking event came as well
}

// add takes a signal, or the copy of one, by its event in the run that had it first.
func (u *unread) add(origin int64, a *schemas.Signal) {
	input := content(a.Input)
	b, _ := json.Marshal([]any{
		u.sum[:], origin, a.SignalName, input[:], a.ExternalWorkflowExecution,
		a.ExternalScheduledEventID, a.RequestID,
	})
	u.n++
	u.sum = sha256.Sum256(b)
}

// see keeps account of what the last DeciderStarted has not seen.
func (u *unread) see(e schemas.Event, wakes bool) {
	switch a := e.Attributes.(type) {
	case *schemas.DeciderStarted:
		*u = unread{}
	case *schemas.Signal:
		u.add(e.ID, a)
	default:
		u.others = u.others || wakes
	}
}

// copies is where a run stands with the signals that the run before it had not read.
type copies struct {
	want int    // how many there must be
	of   string // the run that had them
	has  unread
	like *unread // what they must be; nil if the run before is not there
}

// firstCopy is the event of the first copy: they stand after WorkflowStarted and DeciderScheduled,
// before anything else.
const firstCopy = 3

// checkCopy checks that a run begins with the signals that the run before it had not read (P-4). A
// history may end between two of them, since they need not fit one record.
func (h *History) checkCopy(e schemas.Event) {
	c := &h.copies
	a, signal := e.Attributes.(*schemas.Signal)
	if !signal || a.OriginRun == "" && a.OriginEventID == 0 {
		if c.has.n < c.want && e.ID >= firstCopy {
			h.report(RuleContinuation, e.ID,
				"%s stands before the copies of %d of the %d signals that run %s had not read",
				e.Type(), c.want-c.has.n, c.want, c.of)
			c.want = 0 // once is enough
		}
		return
	}
	if e.ID != firstCopy+int64(c.has.n) || c.has.n >= c.want || a.OriginRun != c.of {
		h.report(RuleContinuation, e.ID,
			"the signal is copied from event %d of run %q; want %d copies, of signals of run "+
				"%q, and before anything else", a.OriginEventID, a.OriginRun, c.want, c.of)
		return
	}
	if c.has.add(a.OriginEventID, a); c.has.n == c.want && c.like != nil &&
		c.has.sum != c.like.sum {
		h.report(RuleContinuation, e.ID,
			"the %d copied signals are others, or in another order, than those that run %s had not read",
			c.want, c.of)
	}
}

// checkUnread checks what a close says of the signals that no decider has seen.
func (h *History) checkUnread(e schemas.Event, unread int) {
	if unread != h.unread.n {
		h.report(RuleUnhandled, e.ID,
			"%s says that %d signals are unread; %d stand after the decider's start at event %d",
			e.Type(), unread, h.unread.n, h.decider.started)
	}
}

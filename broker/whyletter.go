package broker

import (
	"fmt"
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// mostNotes bounds what an owner remembers of reports that it has buried.
const mostNotes = 64

// letterNote is a worker's report that was made a dead letter. Its subject names no workflow, so the stream cannot be asked for those of
// one: the owner tells what it remembers, and the next one knows nothing of it.
type letterNote struct {
	wid             string
	at              schemas.Timestamp
	reason, details string
}

// noteLetter remembers a report that cannot be applied. One of an attempt that is over says nothing of the one under way.
func (p *partition) noteLetter(e *message, reason, details string) {
	if _, reported := e.event.(execution.Report); !reported || reason == execution.DeadClosedActivity || reason == execution.DeadStaleToken {
		return
	}
	if len(p.letters) == mostNotes {
		p.letters = slices.Delete(p.letters, 0, 1)
	}
	p.letters = append(p.letters, letterNote{e.wid, e.at, reason, brief(details)})
}

// letterOf is the clause about the newest report of an open activity that was made a dead letter; "" if none is known.
func (p *partition) letterOf(r *run) string {
	if !r.open() {
		return ""
	}
	open := r.state.OpenActivities()
	for _, n := range slices.Backward(p.letters) {
		if n.wid == r.wid && slices.ContainsFunc(open, func(a *execution.Activity) bool { return a.ScheduledBase <= n.at }) {
			return fmt.Sprintf("; a worker's report of %s is a dead letter (%s: %s), see: drover dead", n.at, n.reason, n.details)
		}
	}
	return ""
}

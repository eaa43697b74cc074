package explain

import (
	"fmt"
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// mostLetters bounds what an owner remembers of reports that it has made dead letters.
const mostLetters = 64

// Letters are the last workers' reports that an owner made dead letters. Their subjects name no
// workflow, so the stream cannot be asked for those of one: the owner tells what it remembers, and
// the next one knows nothing of it.
type Letters struct{ all []letter }

type letter struct {
	workflow        string
	at              schemas.Timestamp
	reason, details string
}

// Note remembers a message that cannot be applied, if it is a report. One of an attempt that is
// over says nothing of the one under way.
func (l *Letters) Note(
	workflow string, m execution.Message, at schemas.Timestamp, reason, details string,
) {
	_, reported := m.(execution.Report)
	if !reported || reason == execution.DeadClosedActivity || reason == execution.DeadStaleToken {
		return
	}
	if len(l.all) == mostLetters {
		l.all = slices.Delete(l.all, 0, 1)
	}
	l.all = append(l.all, letter{workflow, at, reason, brief(details)})
}

// Of is the clause about the newest report of an open activity that was made a dead letter; "" if
// none is known.
func (l *Letters) Of(s *execution.State) string {
	if s.Closed() {
		return ""
	}
	open := s.OpenActivities()
	for _, n := range slices.Backward(l.all) {
		later := func(a *execution.Activity) bool { return a.ScheduledBase <= n.at }
		if n.workflow == s.WorkflowID && slices.ContainsFunc(open, later) {
			return fmt.Sprintf(
				"; a worker's report of %s is a dead letter (%s: %s), see: drover dead",
				n.at,
				n.reason,
				n.details,
			)
		}
	}
	return ""
}

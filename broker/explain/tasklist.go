package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// WaitsForWorker returns the activity that [Why] says no worker has taken; nil if the sentence
// begins with another thing.
func WaitsForWorker(
	s *execution.State, why string, now schemas.Timestamp,
) *schemas.ActivityScheduled {
	if s.Closed() || !strings.HasPrefix(why, noWorker) {
		return nil
	}
	for _, a := range s.OpenActivities() {
		if a.Started == 0 && a.NotBefore <= now {
			return a.Scheduled
		}
	}
	return nil
}

// TaskList is the clause on how a task list stands from which no worker has taken a task; nil if
// that is not known.
func TaskList(i *schemas.TaskListInfo) string {
	switch {
	case i == nil:
		return "; start a worker of that list"
	case i.PausedUntil != 0:
		return fmt.Sprintf(
			"; somebody has paused a consumer of the list until %s: nats consumer resume",
			i.PausedUntil.Time().UTC().Format(time.RFC3339),
		)
	case len(i.Missing) > 0:
		return fmt.Sprintf(
			"; the consumer %s of the list is not there, as somebody has deleted it: %s",
			i.Missing[0],
			schemas.MissingHint,
		)
	case len(i.Untaken) > 0:
		return fmt.Sprintf("; no consumer of the list takes %s, as somebody has changed one: %s",
			strings.Join(i.Untaken, " and "), schemas.UntakenHint)
	case len(i.GivingUp) > 0:
		return fmt.Sprintf(
			"; its consumers %s give a task up after so many deliveries, as somebody has changed them: %s",
			strings.Join(i.GivingUp, " and "),
			schemas.GivingUpHint,
		)
	case i.Workers > 0:
		return fmt.Sprintf("; %s there for tasks, and may not know the type: see the log",
			count(i.Workers, "worker waits", "workers wait"))
	case i.Working > 0 && i.Pending == 0: // more workers would find nothing to do
		return fmt.Sprintf(
			"; its workers have %s in hand, and none waits: if it is this one, its worker has not said that"+
				" it began: see its log, and drover dead",
			count(int(i.Working), "task", "tasks"),
		)
	case i.Working > 0:
		return fmt.Sprintf(
			"; its workers are busy with %s, %s: start more of them",
			count(
				int(i.Working),
				"task",
				"tasks",
			),
			count(int(i.Pending), "task waits", "tasks wait"),
		)
	}
	return fmt.Sprintf(
		"; nobody works on that list, where %s: start a worker",
		count(int(i.Pending), "task waits", "tasks wait"),
	)
}

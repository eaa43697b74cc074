package decisions

import (
	"github.com/droverhq/drover/schemas"
)

// scratch is where a partition writes its decision tasks. Each is encoded before the
// next one is begun, which is written over it: so it takes no memory of its own. What lies there
// between two of them is the last one.
type scratch struct {
	task    schemas.DecisionTask
	base    schemas.DecisionBase
	started schemas.DeciderStarted
	events  []schemas.Event
}

// maxScratchEvents is the longest list of events that is kept from one task to the next.
const maxScratchEvents = 256

// emptyEvents returns an empty list for the events of a task.
func (d *scratch) emptyEvents() []schemas.Event {
	if cap(d.events) > maxScratchEvents {
		d.events = nil
	}
	return d.events[:0]
}

// setEvents puts the events into the task.
func (d *scratch) setEvents(events []schemas.Event) {
	if len(events) < len(d.events) {
		clear(d.events[len(events):]) // of the task before
	}
	d.events, d.task.Events = events, events
}

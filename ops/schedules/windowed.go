package schedules

import (
	"cmp"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Schedules with a window are fired by every node, which counts their windows in the state. This
// master hears of that, waits for the ends of their runs, and shows what is counted.

// counted notes that somebody else may have written the state of a schedule with a window.
func (t *turn) counted(id string, rev uint64) {
	e := t.entry(id)
	if e == nil || e.enter(t.ctx) != nil {
		return
	}
	news := !e.gone && e.rec != nil && e.rec.Schedule.Window != nil && rev > e.stateRev
	if news {
		e.stale = true
	}
	e.leave()
	if news {
		t.kick(e)
	}
}

// WorkflowID is the id of the run of a slot of a schedule whose action is a start.
func WorkflowID(rec *ops.ScheduleRecord, slot schemas.Timestamp) string {
	return cmp.Or(rec.Schedule.Action.Start.WorkflowID, workflowID(rec.Schedule.ID, slot, ""))
}

// SlotText is a slot as inputs, attributes and workflow ids have it.
func SlotText(slot schemas.Timestamp) string { return slotText(slot) }

// Fill puts the slot, and what the state knows of the last one that was done, into an input. A nil
// state knows nothing.
func Fill(
	input schemas.Payload, slot schemas.Timestamp, state *ops.ScheduleState,
) (schemas.Payload, error) {
	v := &values{slot: slotText(slot)}
	if state != nil {
		v.lastSlot, v.lastResult = slotText(state.LastDone), state.LastResult
	}
	return fill(input, v)
}

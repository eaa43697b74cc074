package schedules

import (
	"fmt"
	"slices"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// mostWaiting is how many slots of a schedule may wait, and how many of its runs may be open.
	mostWaiting = 1000
	// mostRecent is how many settled slots the state tells of.
	mostRecent = 20
	// largestResult is how large a result may be that the next input can use, bytes.
	largestResult = 64 << 10
)

// slotState is what a schedule has done. Its methods decide what becomes of slots; they do no I/O.
type slotState struct {
	ops.ScheduleState
	overlap ops.OverlapPolicy // of slots that have none of their own
}

// clone is a state that may be changed, and saved or dropped.
func (b *slotState) clone() *slotState {
	c := *b
	if b.Starting != nil {
		s := *b.Starting
		c.Starting = &s
	}
	if b.Remaining != nil {
		n := *b.Remaining
		c.Remaining = &n
	}
	c.Running, c.Buffered, c.Recent = slices.Clone(b.Running), slices.Clone(b.Buffered),
		slices.Clone(b.Recent)
	return &c
}

func (b *slotState) policy(s ops.ScheduleSlot) ops.OverlapPolicy {
	for _, p := range []ops.OverlapPolicy{s.Overlap, b.overlap} {
		if p != "" {
			return p
		}
	}
	return ops.OverlapSkip
}

// rests tells whether all slots that the schedule was limited to are done.
func (b *slotState) rests() bool { return b.Remaining != nil && *b.Remaining <= 0 }

// accept decides on a slot that is due: it is begun, waits, or is settled. It reports whether it
// will be done.
func (b *slotState) accept(s ops.ScheduleSlot, now schemas.Timestamp) bool {
	p := b.policy(s)
	free := b.Starting == nil && len(b.Running) == 0 && len(b.Buffered) == 0
	switch {
	case p == ops.OverlapAllow && len(b.Running) >= mostWaiting:
		return b.leaveOut(s, ops.SlotOverrun, now, "%d runs of the schedule are open",
			len(b.Running))
	case free, p == ops.OverlapAllow && b.Starting == nil:
		b.begin(s, now)
	case p == ops.OverlapSkip:
		return b.leaveOut(s, ops.SlotSkipped, now, "%s", b.inTheWay())
	case p == ops.OverlapBufferOne && len(b.Buffered) > 0:
		return b.leaveOut(s, ops.SlotSkipped, now, "the slot %s waits already", b.Buffered[0].Slot)
	case (p == ops.OverlapBufferAll || p == ops.OverlapAllow) && len(b.Buffered) >= mostWaiting:
		return b.leaveOut(s, ops.SlotOverrun, now, "%d slots wait", len(b.Buffered))
	default:
		if ends(p) {
			b.replaceWaiting(s, now)
		}
		s.Outcome, s.At = ops.SlotBuffered, now
		b.Buffered = append(b.Buffered, s)
	}
	if b.Remaining != nil && *b.Remaining > 0 {
		*b.Remaining--
	}
	return true
}

// ends tells whether a slot of the policy ends the runs that are open.
func ends(p ops.OverlapPolicy) bool {
	return p == ops.OverlapCancelOther || p == ops.OverlapTerminateOther
}

// replaceWaiting settles those that wait for the end of the same runs: only the latest is to follow
// them.
func (b *slotState) replaceWaiting(s ops.ScheduleSlot, now schemas.Timestamp) {
	for _, w := range b.Buffered {
		b.leaveOut(w, ops.SlotSkipped, now, "the slot %s came while it waited", s.Slot)
	}
	b.Buffered = nil
}

func (b *slotState) inTheWay() string {
	switch {
	case len(b.Running) > 0:
		return fmt.Sprintf("run %s of the slot %s is open", b.Running[0].Run, b.Running[0].Slot)
	case b.Starting != nil:
		return fmt.Sprintf("the slot %s is being started", b.Starting.Slot)
	}
	return fmt.Sprintf("the slot %s waits", b.Buffered[0].Slot)
}

// begin makes a slot the one that is being started.
func (b *slotState) begin(s ops.ScheduleSlot, now schemas.Timestamp) {
	s.Outcome, s.At = ops.SlotStarting, now
	b.Starting = &s
}

// advance begins the first waiting slot that may begin. While the schedule is paused those wait on
// that nobody has asked for.
func (b *slotState) advance(paused bool, now schemas.Timestamp) bool {
	if b.Starting != nil {
		return false
	}
	for i, s := range b.Buffered {
		if paused && s.Manual == "" || len(b.Running) > 0 && b.policy(s) != ops.OverlapAllow {
			continue
		}
		b.Buffered = slices.Delete(b.Buffered, i, i+1)
		b.begin(s, now)
		return true
	}
	return false
}

// toEnd are the runs that a waiting slot wants ended, and whether they are asked or terminated.
func (b *slotState) toEnd() (runs []ops.ScheduleSlot, terminate bool) {
	for _, s := range b.Buffered {
		if p := b.policy(s); ends(p) {
			return b.Running, p == ops.OverlapTerminateOther
		}
	}
	return nil, false
}

// started turns the slot that was being started into one that runs; done into one that is settled.
func (b *slotState) started(wid, run string, now schemas.Timestamp) {
	s := *b.Starting
	s.Outcome, s.At, s.WorkflowID, s.Run = ops.SlotRunning, now, wid, run
	b.Starting = nil
	b.Counts.Started++
	b.Running = append(b.Running, s)
}

func (b *slotState) signaled(wid, run string, now schemas.Timestamp) {
	s := *b.Starting
	s.WorkflowID, s.Run = wid, run
	b.Starting = nil
	b.Counts.Started++
	b.settle(s, ops.SlotDone, now, "")
	b.LastDone = s.Slot
}

// refused settles the slot that was being started.
func (b *slotState) refused(o ops.SlotOutcome, now schemas.Timestamp, reason string) {
	s := *b.Starting
	b.Starting = nil
	s.Run = ""
	b.settle(s, o, now, reason)
}

// ended settles the slots of a run that has ended. It reports false if there are none.
func (b *slotState) ended(
	run string, status schemas.Status, reason string, result schemas.Payload, now schemas.Timestamp,
) bool {
	found := false
	for _, s := range slices.Clone(b.Running) {
		if s.Run == run {
			b.settleEnd(s, status, reason, result, now)
			found = true
		}
	}
	b.Running = slices.DeleteFunc(b.Running, func(s ops.ScheduleSlot) bool { return s.Run == run })
	return found
}

// settleEnd has an empty status if nobody knows how the run has ended.
func (b *slotState) settleEnd(
	s ops.ScheduleSlot, status schemas.Status, reason string, result schemas.Payload,
	now schemas.Timestamp,
) {
	s.Status = status
	switch status {
	case schemas.StatusCompleted:
		b.LastDone, b.LastResult = s.Slot, nil
		if len(result) <= largestResult {
			b.LastResult = result
		}
		b.settle(s, ops.SlotDone, now, "")
	case "":
		b.settle(s, ops.SlotDone, now, "its history is purged, so how it ended is not known")
	default:
		b.settle(s, ops.SlotFailed, now, reason)
	}
}

// leaveOut settles a slot for which nothing was started, and reports false.
func (b *slotState) leaveOut(
	s ops.ScheduleSlot, o ops.SlotOutcome, now schemas.Timestamp, reason string, args ...any,
) bool {
	b.settle(s, o, now, fmt.Sprintf(reason, args...))
	return false
}

// missed settles n slots at once, of which s is the last.
func (b *slotState) missed(s ops.ScheduleSlot, n int64, now schemas.Timestamp, reason string) {
	if n > 1 {
		reason = fmt.Sprintf("%d slots: %s", n, reason)
	}
	b.settle(s, ops.SlotMissed, now, reason)
	b.Counts.Missed += n - 1
}

func (b *slotState) settle(s ops.ScheduleSlot, o ops.SlotOutcome, now schemas.Timestamp, reason string) {
	s.Outcome, s.At, s.Reason = o, now, reason
	c := &b.Counts
	switch o {
	case ops.SlotDone:
		c.Done++
	case ops.SlotFailed:
		c.Failed++
	case ops.SlotSkipped:
		c.Skipped++
	case ops.SlotMissed:
		c.Missed++
	case ops.SlotOverrun:
		c.Overrun++
	case ops.SlotRefused:
		c.Refused++
	}
	b.Recent = slices.Insert(b.Recent, 0, s)
	b.Recent = b.Recent[:min(len(b.Recent), mostRecent)]
}

// overrunBegins tells whether the slot is one too many, and the one before was not.
func (b *slotState) overrunBegins(slot schemas.Timestamp) bool {
	r := b.Recent
	return len(r) > 0 && r[0].Slot == slot && r[0].Outcome == ops.SlotOverrun &&
		(len(r) == 1 || r[1].Outcome != ops.SlotOverrun)
}

// refusalBegins tells whether the latest slot was refused, and the one before was not for the same
// reason.
func (b *slotState) refusalBegins() bool {
	r := b.Recent
	return len(r) > 0 && r[0].Outcome == ops.SlotRefused &&
		(len(r) == 1 || r[1].Outcome != ops.SlotRefused || r[1].Reason != r[0].Reason)
}

// knows tells whether a slot that was asked for is among those that the state tells of.
func (b *slotState) knows(manual string) bool {
	is := func(s ops.ScheduleSlot) bool { return s.Manual == manual }
	return b.Starting != nil && is(*b.Starting) || slices.ContainsFunc(b.Running, is) ||
		slices.ContainsFunc(b.Buffered, is) || slices.ContainsFunc(b.Recent, is)
}

// open is how many runs are open, or about to be.
func (b *slotState) open() int {
	n := len(b.Running)
	if b.Starting != nil {
		n++
	}
	return n
}

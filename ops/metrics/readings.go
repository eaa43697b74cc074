package metrics

import (
	"slices"
	"time"

	"github.com/droverhq/drover/internal/tally"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// readings shows what the master has read.
func (c *collection) readings(n *Namespace) {
	n.mu.Lock()
	r, a := n.read, n.audited
	n.mu.Unlock()
	for _, l := range bounded(r.lists, listName, joinLists) {
		c.put(listBacklog, float64(l.Pending), n.name, l.List)
		c.put(listInHand, float64(l.Working), n.name, l.List)
		c.put(listWorkers, float64(l.Workers), n.name, l.List)
		age := 0.0
		if l.OldestAt != 0 {
			age = max(time.Since(l.OldestAt.Time()), 0).Seconds()
		}
		c.put(listOldest, age, n.name, l.List)
	}
	for _, d := range bounded(r.dead, reasonOf, joinDead) {
		c.put(deadStored, float64(d.Count), n.name, d.Reason)
	}
	if r.locks != nil {
		c.put(locksHeld, float64(r.locks[0]), n.name)
		c.put(locksWaiting, float64(r.locks[1]), n.name)
	}
	c.schedules(n.name, r.schedules)
	for _, w := range bounded(r.alwaysOn, alwaysID, joinAlways) {
		c.put(alwaysOnUp, w.up, n.name, w.id)
	}
	for status, servers := range r.nodes {
		c.put(nodesStatus, float64(servers), string(status))
	}
	for of, found := range a.findings {
		c.put(auditFindings, float64(found), n.name, string(of.Kind), string(of.Severity))
	}
	if r.lag != nil {
		c.put(indexLag, float64(*r.lag), n.name)
	}
	for _, t := range bounded(r.open, typeName, joinTypes) {
		c.put(runsOpen, float64(t.runs), n.name, t.name)
	}
	for cause, runs := range a.paused {
		c.put(runsPaused, float64(runs), n.name, string(cause))
	}
}

func (c *collection) schedules(ns string, all []ops.ScheduleLine) {
	for _, l := range bounded(all, scheduleID, joinSchedules) {
		for _, o := range [...]struct {
			outcome ops.SlotOutcome
			n       int64
		}{
			{ops.SlotDone, l.Counts.Done},
			{ops.SlotFailed, l.Counts.Failed},
			{ops.SlotSkipped, l.Counts.Skipped},
			{ops.SlotMissed, l.Counts.Missed},
			{ops.SlotOverrun, l.Counts.Overrun},
			{ops.SlotRefused, l.Counts.Refused},
		} {
			c.put(scheduleSlots, float64(o.n), ns, l.Schedule.ID, string(o.outcome))
		}
	}
}

// bounded are the first of all, as many as [tally.Limit]; the others are joined into one more.
func bounded[T any](all []T, label func(*T) *string, join func(into, one *T)) []T {
	if len(all) <= tally.Limit {
		return all
	}
	some := slices.Clone(all[:tally.Limit+1])
	rest := &some[tally.Limit]
	*label(rest) = other
	for i := range all[tally.Limit+1:] {
		join(rest, &all[tally.Limit+1+i])
	}
	return some
}

func listName(l *schemas.TaskListInfo) *string { return &l.List }

func joinLists(into, one *schemas.TaskListInfo) {
	into.Pending += one.Pending
	into.Working += one.Working
	into.Workers += one.Workers
	if into.OldestAt == 0 || one.OldestAt != 0 && one.OldestAt < into.OldestAt {
		into.OldestAt = one.OldestAt
	}
}

func reasonOf(d *schemas.DeadCount) *string { return &d.Reason }
func joinDead(into, one *schemas.DeadCount) { into.Count += one.Count }

func scheduleID(l *ops.ScheduleLine) *string { return &l.Schedule.ID }

func joinSchedules(into, one *ops.ScheduleLine) {
	a, b := &into.Counts, &one.Counts
	a.Done, a.Failed, a.Skipped = a.Done+b.Done, a.Failed+b.Failed, a.Skipped+b.Skipped
	a.Missed, a.Overrun, a.Refused = a.Missed+b.Missed, a.Overrun+b.Overrun, a.Refused+b.Refused
}

// alwaysOn is an always-on workflow that is to be up: 1 if it is, else 0; of several, if all are.
type alwaysOn struct {
	id string
	up float64
}

func alwaysID(w *alwaysOn) *string   { return &w.id }
func joinAlways(into, one *alwaysOn) { into.up = min(into.up, one.up) }

// openType is how many runs of a type are open.
type openType struct {
	name string
	runs int64
}

func typeName(t *openType) *string  { return &t.name }
func joinTypes(into, one *openType) { into.runs += one.runs }

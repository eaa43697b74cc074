package schedules

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

const (
	defaultNext, mostNext = 10, 1000
	defaultList, mostList = 100, 500
	// pageBytes bounds a page of a list.
	pageBytes = 512 << 10
)

func (t *turn) show(ctx context.Context, q *ops.ScheduleRequest) (*ops.ScheduleResponse, error) {
	if q.Next < 0 || q.Next > mostNext {
		return nil, invalid("next", "it is %d; want 1 to %d, or 0 for %d",
			q.Next, mostNext, defaultNext)
	}
	if q.Until != 0 {
		return nil, invalid("until", "it ends a pause").WithHint("leave it out")
	}
	return t.with(ctx, q.ID, func(e *entry) (*ops.ScheduleResponse, error) {
		return t.response(e, cmp.Or(q.Next, defaultNext)), nil
	})
}

// response tells all about a schedule. The caller is in it.
func (t *turn) response(e *entry, next int) *ops.ScheduleResponse {
	a := &ops.ScheduleResponse{
		V: schemas.Version, Revision: e.recRev, TimeZones: calendar.TZVersion(),
	}
	a.Record = &ops.ScheduleRecord{Schedule: ops.Schedule{ID: e.id}}
	if e.rec != nil {
		r := *e.rec
		a.Record = &r
	}
	if e.damage != "" {
		a.Warnings = []string{"it is not served: " + e.damage}
		return a
	}
	a.Record.Schedule = e.current()
	st := e.slots.clone().ScheduleState
	a.State = &st
	a.NextTimes = t.nextTimes(e, next)
	return a
}

// nextTimes are the next n slots, whether the schedule is paused or not.
func (t *turn) nextTimes(e *entry, n int) (all []schemas.Timestamp) {
	now := t.now()
	if r := e.slots.Remaining; r != nil {
		n = int(min(int64(n), *r))
	}
	if w := e.rec.Schedule.Window; w != nil {
		return nextWindows(w, now, n)
	}
	last := e.last(&e.slots)
	if last.Before(now) {
		last = now
	}
	for len(all) < n {
		slot, ok := e.times.cal.Next(last)
		if !ok {
			break
		}
		all, last = append(all, schemas.At(slot)), slot
	}
	return all
}

// nextWindows are the next n instants at which a window opens.
func nextWindows(w *ops.ScheduleWindow, now time.Time, n int) (all []schemas.Timestamp) {
	window, err := calendar.CompileWindow(w)
	if err != nil {
		return nil
	}
	for at := now; len(all) < n; {
		next, ok := window.Next(at)
		if !ok {
			break
		}
		if next.Opens.After(now) {
			all = append(all, schemas.At(next.Opens))
		}
		at = next.Closes.Add(-1)
		if !at.After(now) || at.Before(next.At) {
			at = next.At
		}
	}
	return all
}

func (t *turn) list(
	ctx context.Context, q *ops.ScheduleListRequest,
) (*ops.ScheduleListResponse, error) {
	if q.Limit < 0 {
		return nil, invalid("limit", "it is %d; want 1 to %d, or 0 for %d",
			q.Limit, mostList, defaultList)
	}
	limit := min(cmp.Or(q.Limit, defaultList), mostList)
	a := &ops.ScheduleListResponse{V: schemas.Version, Schedules: []ops.ScheduleLine{}}
	size := 0
	for _, e := range t.after(q.Prefix, q.Cursor) {
		if len(a.Schedules) == limit {
			a.Cursor = a.Schedules[limit-1].Schedule.ID
			break
		}
		line, ok, err := t.line(ctx, e)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		body, err := schemas.MarshalJSON(&line)
		if err != nil {
			return nil, err
		}
		if size += len(body); size > pageBytes && len(a.Schedules) > 0 {
			a.Cursor = a.Schedules[len(a.Schedules)-1].Schedule.ID
			break
		}
		a.Schedules = append(a.Schedules, line)
	}
	return a, nil
}

// after are the schedules with a prefix after an id, by their ids.
func (t *turn) after(prefix, cursor string) (all []*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, e := range t.entries {
		if strings.HasPrefix(id, prefix) && id > cursor {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return strings.Compare(a.id, b.id) })
	return all
}

func (t *turn) line(ctx context.Context, e *entry) (line ops.ScheduleLine, ok bool, err error) {
	if err := e.enter(ctx); err != nil {
		return line, false, err
	}
	defer e.leave()
	switch {
	case e.gone, e.rec == nil && e.damage == "": // or it is being made
		return line, false, nil
	case e.damage != "":
		line.Schedule = ops.Schedule{ID: e.id, Note: cut("it is not served: "+e.damage, mostNote)}
		return line, true, nil
	}
	line.Schedule, line.Counts, line.Running = e.current(), e.slots.Counts, e.slots.open()
	if next := t.nextTimes(e, 1); len(next) > 0 {
		line.Next = next[0]
	}
	if all := e.slots.Running; len(all) > 0 {
		last := all[len(all)-1]
		line.Last = &last
	} else if len(e.slots.Recent) > 0 {
		last := e.slots.Recent[0]
		line.Last = &last
	}
	return line, true, nil
}

package windows

import (
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

// nightly is a schedule with a window of twelve triggers, 02:00 to 03:00.
func nightly(zone string) *ops.ScheduleRecord {
	return &ops.ScheduleRecord{
		V: schemas.Version, Incarnation: "i1", Since: schemas.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		Schedule: ops.Schedule{
			ID:     "nightly",
			Window: &ops.ScheduleWindow{Opens: "02:00", Length: schemas.Duration(time.Hour), Every: schemas.Duration(5 * time.Minute), TimeZone: zone},
			Action: ops.ScheduleAction{Start: &schemas.StartRequest{Type: "report"}},
		},
	}
}

// bucket is what nodes share: keys, and the state of the schedule.
type bucket struct {
	keys  map[string]*ops.PeriodRecord
	state *ops.ScheduleState
	runs  map[string]bool // that have begun, by run id
}

// stage is how far a node comes with a window before it dies.
type stage int

const (
	afterCreate stage = iota
	afterStart
	whole
)

// live lets a node live at an instant, and for no longer.
func (b *bucket) live(t *testing.T, rec *ops.ScheduleRecord, win *calendar.Window, now time.Time, until stage) {
	t.Helper()
	for range 5 { // each round does what the one before has made possible
		table := newTable(logx.Or(nil))
		e := &entry{rec: rec, win: win}
		e.count(b.state)
		table.entries["nightly"] = e
		for key, k := range b.keys {
			table.periods[key] = &held{rec: k}
		}
		table.end()
		tasks, _ := table.plan(now, now.Add(-time.Second))
		if len(tasks) == 0 {
			return
		}
		for _, task := range tasks {
			if !b.do(task, now, until) {
				return // it is dead
			}
		}
	}
	t.Fatalf("at %v there is always something to do", now)
}

func (b *bucket) do(task task, now time.Time, until stage) (lives bool) {
	key := func(at *calendar.Trigger) string { return windowKey("nightly", "i1", at.Period) }
	switch {
	case task.mend != nil:
		b.runs[task.mend.rec.Run] = true
		if until < whole {
			return false
		}
		task.mend.rec.Started = true
	case task.begin != nil:
		k := &ops.PeriodRecord{Period: task.begin.Period, At: schemas.At(now), Slot: schemas.At(task.begin.Opens), Run: runOf("default", task.rec, task.begin)}
		b.keys[key(task.begin)] = k
		if until == afterCreate {
			return false
		}
		b.runs[k.Run] = true
		if until == afterStart {
			return false
		}
		k.Started = true
	case task.missed != nil:
		b.keys[key(task.missed)] = &ops.PeriodRecord{Started: true, Refusal: reasonMissed, Slot: schemas.At(task.missed.Opens), At: schemas.At(now)}
	case task.settle != nil:
		count(task.rec, b.state, task.settle, b.keys[key(task.settle)], 0)
	}
	return true
}

// S2-11: whichever of the twelve triggers a node lived at, and however far it came before it died, the window starts exactly one
// run; without any it is counted as missed.
func TestEveryPatternOfTriggers(t *testing.T) {
	rec := nightly("")
	win, err := calendar.CompileWindow(rec.Schedule.Window)
	if err != nil {
		t.Fatal(err)
	}
	opens := time.Date(2026, 1, 5, 2, 0, 0, 0, time.UTC)
	before := schemas.At(opens.AddDate(0, 0, -1))
	for pattern := range 1 << 12 {
		for _, dies := range []stage{afterCreate, afterStart, whole} {
			b := &bucket{
				keys: map[string]*ops.PeriodRecord{}, runs: map[string]bool{},
				state: &ops.ScheduleState{Incarnation: "i1", LastSlot: before},
			}
			for i := range 12 {
				if pattern>>i&1 == 1 {
					b.live(t, rec, win, opens.Add(time.Duration(i)*5*time.Minute), dies)
				}
			}
			b.live(t, rec, win, opens.Add(time.Hour+after), whole)
			c := b.state.Counts
			if pattern == 0 && (len(b.runs) != 0 || c.Started != 0 || c.Missed != 1) || pattern != 0 && (len(b.runs) != 1 || c.Started != 1 || c.Missed != 0) {
				t.Fatalf("pattern %012b, each dies at stage %d: %d runs, counted %+v", pattern, dies, len(b.runs), c)
			}
		}
	}
}

// S2-11: the day on which the clock goes from 02:00 to 03:00 has its window, and the one with 02:00 twice has it once.
func TestDaysOfClockChanges(t *testing.T) {
	rec := nightly("Europe/Berlin")
	win, err := calendar.CompileWindow(rec.Schedule.Window)
	if err != nil {
		t.Fatal(err)
	}
	for _, day := range []string{"2026-03-28", "2026-03-29", "2026-03-30", "2026-10-24", "2026-10-25", "2026-10-26"} {
		noon, err := time.Parse("2006-01-02 15:04", day+" 12:00")
		if err != nil {
			t.Fatal(err)
		}
		b := &bucket{
			keys: map[string]*ops.PeriodRecord{}, runs: map[string]bool{},
			state: &ops.ScheduleState{Incarnation: "i1", LastSlot: schemas.At(noon.Add(-24 * time.Hour))},
		}
		for at := noon.Add(-12 * time.Hour); at.Before(noon); at = at.Add(5 * time.Minute) {
			b.live(t, rec, win, at, whole)
		}
		if len(b.runs) != 1 || b.state.Counts.Started != 1 {
			t.Errorf("%s: %d runs, counted %+v, want one", day, len(b.runs), b.state.Counts)
		}
	}
}

// Windows that nobody looked at for years are counted in one go, and the latest of them one by one.
func TestYearsOfMissedWindows(t *testing.T) {
	rec := nightly("")
	win, err := calendar.CompileWindow(rec.Schedule.Window)
	if err != nil {
		t.Fatal(err)
	}
	e := &entry{rec: rec, win: win, left: -1}
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	state := &ops.ScheduleState{Incarnation: "i1"}
	rounds := 0
	for ; rounds < 100; rounds++ {
		e.count(state)
		s, _ := e.ended(now, func(string) *ops.PeriodRecord { return nil })
		if s == nil {
			break
		}
		count(rec, state, s.missed, &ops.PeriodRecord{Slot: schemas.At(s.missed.Opens), Started: true, Refusal: reasonMissed}, s.before)
	}
	if days := int64(4*365 + 2); state.Counts.Missed != days || rounds > 20 || len(state.Recent) > recent {
		t.Errorf("%+v in %d rounds, want %d missed", state.Counts, rounds, days)
	}
}

// A schedule that is paused, or has nothing left, begins no window; what is due is what a trigger made due.
func TestPlan(t *testing.T) {
	opens := time.Date(2026, 1, 5, 2, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		change func(r *ops.ScheduleRecord, e *entry)
		seen   time.Time
		at     time.Time
		begins bool
	}{
		"at the first trigger":      {seen: opens.Add(-time.Second), at: opens, begins: true},
		"before it":                 {seen: opens.Add(-time.Minute), at: opens.Add(-1)},
		"between two triggers":      {seen: opens.Add(time.Second), at: opens.Add(time.Minute)},
		"late for the last trigger": {seen: opens, at: opens.Add(59 * time.Minute), begins: true},
		"after the window":          {seen: opens, at: opens.Add(time.Hour)},
		"paused": {seen: opens.Add(-1), at: opens, change: func(r *ops.ScheduleRecord, _ *entry) {
			r.Schedule.Paused = true
		}},
		"paused until then": {seen: opens.Add(-1), at: opens, begins: true, change: func(r *ops.ScheduleRecord, _ *entry) {
			r.Schedule.Paused, r.Schedule.PausedUntil = true, schemas.At(opens)
		}},
		"used up":           {seen: opens.Add(-1), at: opens, change: func(_ *ops.ScheduleRecord, e *entry) { e.left = 0 }},
		"made within it":    {seen: opens, at: opens.Add(6 * time.Minute), begins: true, change: since(opens.Add(time.Minute))},
		"made after it was": {seen: opens, at: opens.Add(6 * time.Minute), change: since(opens.Add(6 * time.Minute))},
	} {
		t.Run(name, func(t *testing.T) {
			rec := nightly("")
			win, err := calendar.CompileWindow(rec.Schedule.Window)
			if err != nil {
				t.Fatal(err)
			}
			e := &entry{rec: rec, win: win, left: -1, seen: tc.seen, lastSlot: opens.AddDate(0, 0, -1)}
			if tc.change != nil {
				tc.change(rec, e)
			}
			steps, _ := e.plan(tc.at, func(string) *ops.PeriodRecord { return nil })
			if begins := slices.ContainsFunc(steps, func(s step) bool { return s.begin != nil }); begins != tc.begins {
				t.Errorf("begins: %t, want %t", begins, tc.begins)
			}
		})
	}
}

func since(at time.Time) func(*ops.ScheduleRecord, *entry) {
	return func(r *ops.ScheduleRecord, _ *entry) { r.Since = schemas.At(at) }
}

// What concerns no window wakes nobody: of 10,000 schedules without one, each slot changes a state.
func TestNewsOfOtherSchedules(t *testing.T) {
	table := newTable(logx.Or(nil))
	body := func(v any) []byte {
		b, err := schemas.MarshalJSON(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	plain := &ops.ScheduleRecord{Incarnation: "i1", Schedule: ops.Schedule{ID: "plain", Times: &ops.ScheduleTimes{Cron: []string{"* * * * *"}}}}
	state := &ops.ScheduleState{Incarnation: "i1", LastSlot: schemas.At(time.Unix(1e9, 0))}
	table.end()
	for i, step := range []struct {
		key     string
		value   []byte
		deleted bool
		news    bool
	}{
		{key: "schedule.plain", value: body(plain)},
		{key: "schedule.plain.state", value: body(state)},
		{key: "period.plain.2026-01-01", value: []byte("{}")},
		{key: "recycle", value: []byte("{}")},
		{key: "schedule.nightly", value: body(nightly("")), news: true},
		{key: "schedule.nightly.state", value: body(state), news: true},
		{key: "period.nightly.i1.2026-01-01", value: []byte("{}"), news: true},
		{key: "schedule.nightly", deleted: true, news: true},
		{key: "schedule.nightly.state", deleted: true},
	} {
		if news, err := table.put(step.key, step.value, uint64(i+1), step.deleted); err != nil || news != step.news {
			t.Errorf("%s: news %t, error %v, want %t", step.key, news, err, step.news)
		}
	}
	if len(table.states) != 0 {
		t.Errorf("states are kept of no schedule: %v", table.states)
	}
}

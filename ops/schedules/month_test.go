package schedules

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

// monthly are schedules of many kinds in several zones.
func monthly() []ops.Schedule {
	start := ops.ScheduleAction{Start: &schemas.StartRequest{Type: "quick", Input: schemas.Payload(`{"slot":"${slot}"}`)}}
	times := func(zone string, cron ...string) *ops.ScheduleTimes {
		return &ops.ScheduleTimes{Cron: cron, TimeZone: zone}
	}
	return []ops.Schedule{
		{ID: "berlin at night", Times: times("Europe/Berlin", "30 2 * * *"), Action: start},
		{ID: "new york.all hours", Times: times("America/New_York", "0 * * * *"), Action: start, Overlap: ops.OverlapAllow},
		{ID: "lord howe", Times: times("Australia/Lord_Howe", "15,45 1-2 * * *"), Action: start, Overlap: ops.OverlapBufferOne},
		{ID: "last day", Times: times("", "0 12 L * *"), Action: start},
		{ID: "leap day", Times: times("Asia/Tokyo", "0 0 29 2 *", "0 0 1 1 *"), Action: start},
		{ID: "six hours", Times: &ops.ScheduleTimes{Every: []ops.ScheduleInterval{{Every: schemas.Duration(6 * time.Hour)}}, Jitter: schemas.Duration(time.Hour)}, Action: start, Overlap: ops.OverlapBufferAll},
		{ID: "work days", Times: &ops.ScheduleTimes{Cron: []string{"0 9 * * MON-FRI"}, TimeZone: "Europe/London", Except: []ops.ScheduleException{{Date: "2028-01-03"}}}, Action: start, Overlap: ops.OverlapCancelOther},
		{ID: "a signal", Times: times("America/Sao_Paulo", "0 0 * * *"), Action: ops.ScheduleAction{Signal: &schemas.SignalRequest{WorkflowID: "w", Name: "day"}}},
	}
}

// S2-10, acceptance 1 of schedules: spans with a leap day, the change of the clocks both ways and a year's end, and masters that die at
// one of their first writes, before or after it. Each slot is done once, or counted.
func TestAMonthInWhichMastersDie(t *testing.T) {
	for _, span := range []struct{ from, until string }{
		{"2028-02-28T00:00:00Z", "2028-03-14T00:20:00Z"}, // leap day, New York on
		{"2028-03-25T00:00:00Z", "2028-04-03T00:20:00Z"}, // Berlin on, Lord Howe back
		{"2027-12-29T00:00:00Z", "2028-01-05T00:20:00Z"},
		{"2028-10-28T00:00:00Z", "2028-11-06T00:20:00Z"}, // Berlin and New York back
	} {
		t.Run(span.from[:10], func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			virtual.Run(t, func(t *testing.T) {
				from, until := at(t, span.from), at(t, span.until)
				w := newWorld(t)
				w.ahead = time.Until(from)
				masterless(t, w, until, rand.New(rand.NewPCG(seed, 1)))
				for _, s := range monthly() {
					w.wantEachOnce(t, &s, from, until)
				}
			})
		})
	}
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	x, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// masterless makes the schedules, and has masters live and die until a time.
func masterless(t *testing.T, w *world, until time.Time, dice *rand.Rand) {
	m := w.master(nil)
	for _, s := range monthly() {
		m.must("scheduleCreate", &ops.ScheduleCreateRequest{Schedule: s})
	}
	m.kill()
	deaths := 0
	for w.now().Before(until.Add(-time.Hour)) {
		n, f := 1+dice.IntN(8), diesBefore
		if dice.IntN(2) == 0 {
			f = diesAfter
		}
		m := w.master(func(string) fate {
			if n--; n == 0 {
				return f
			}
			return lives
		})
		go m.janitor()
		select {
		case <-m.dead:
			deaths++
		case <-time.After(until.Add(-time.Hour).Sub(w.now())):
		}
		m.kill()
		time.Sleep(time.Duration(dice.Int64N(int64(90 * time.Second))))
	}
	m = w.master(nil)
	defer m.kill()
	time.Sleep(until.Add(30 * time.Second).Sub(w.now()))
	t.Logf("%d masters died", deaths)
	if deaths < 100 {
		t.Errorf("only %d masters died: the test shows nothing", deaths)
	}
}

// wantEachOnce wants each slot of a schedule in a span to be done once, or to be counted.
func (w *world) wantEachOnce(t *testing.T, s *ops.Schedule, from, until time.Time) {
	t.Helper()
	cal, err := calendar.Compile(s.Times)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	due := 0
	for at := from.Add(-1); ; due++ {
		slot, ok := cal.Next(at)
		if !ok || !slot.Add(cal.Delay(s.ID, slot)).Before(until) {
			break
		}
		want[slotText(schemas.At(slot))], at = true, slot
	}
	c := w.state(s.ID).Counts
	counted := c.Skipped + c.Missed + c.Overrun + c.Refused
	if c.Started+counted != int64(due) {
		t.Errorf("%s: %+v, want %d slots in all", s.ID, c, due)
	}
	if s.Action.Signal != nil {
		if len(w.signals) != int(c.Started) {
			t.Errorf("%s: %d signals of slots, want %d", s.ID, len(w.signals), c.Started)
		}
		return
	}
	begun := w.slotsBegun(s.ID)
	if len(begun) != int(c.Started) || c.Done+c.Failed != c.Started {
		t.Errorf("%s: slots of %d runs, and %+v", s.ID, len(begun), c)
	}
	for _, slot := range begun {
		if n := w.slotOf[s.ID][slot]; n != 1 || !want[slot] {
			t.Errorf("%s: slot %s has %d runs; due: %v", s.ID, slot, n, want[slot])
		}
	}
}

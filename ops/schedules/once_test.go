package schedules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// everyMinute starts runs that are purged at once when they may be.
func everyMinute(o ops.OverlapPolicy) ops.Schedule {
	return ops.Schedule{
		ID: "s", Times: &ops.ScheduleTimes{Cron: []string{"* * * * *"}}, Overlap: o,
		Action: ops.ScheduleAction{Start: &schemas.StartRequest{Type: "quick"}},
	}
}

// S2-10: a master dies before and after each of its first writes. Each slot has one run, also where nobody knew that the run had begun.
func TestAMasterDiesAtEachOfItsWrites(t *testing.T) {
	for _, overlap := range []ops.OverlapPolicy{ops.OverlapSkip, ops.OverlapAllow, ops.OverlapTerminateOther} {
		for _, f := range []fate{diesBefore, diesAfter} {
			virtual.Run(t, func(t *testing.T) {
				for n := 1; ; n++ {
					if !dieAt(t, overlap, f, n) {
						t.Logf("%s: died at each of %d writes", overlap, n-1)
						return
					}
				}
			})
		}
	}
}

// dieAt has the first master die at its n-th write, and reports whether it did.
func dieAt(t *testing.T, overlap ops.OverlapPolicy, f fate, n int) bool {
	w := newWorld(t)
	w.takes = 90 * time.Second
	time.Sleep(time.Second)
	setup := w.master(nil)
	setup.must("scheduleCreate", &ops.ScheduleCreateRequest{Schedule: everyMinute(overlap)})
	setup.kill()
	at := 0
	m := w.master(func(string) fate {
		if at++; at == n {
			return f
		}
		return lives
	})
	go m.janitor()
	select {
	case <-m.dead:
	case <-time.After(5*time.Minute + 30*time.Second):
	}
	m.kill()
	died := at >= n
	time.Sleep(10 * time.Minute) // what has closed meanwhile is purged as soon as somebody may
	next := w.master(nil)
	go next.janitor()
	time.Sleep(10*time.Minute + 20*time.Second)
	a := next.must("scheduleShow", &ops.ScheduleRequest{ID: "s"})
	next.kill()
	slots := w.slotsBegun("s")
	c := a.State.Counts
	due := int64(a.State.LastSlot.Sub(a.Record.Since)/time.Minute) + 1
	if known := c.Started + c.Skipped + c.Missed + c.Overrun + c.Refused + int64(len(a.State.Buffered)); known != due {
		t.Errorf("%s, write %d, %v: %+v, want %d slots", overlap, n, f, c, due)
	}
	if int(c.Started) != len(slots) || c.Started != c.Done+c.Failed+int64(len(a.State.Running)) {
		t.Errorf("%s, write %d, %v: %d slots have runs, and %+v", overlap, n, f, len(slots), c)
	}
	for _, slot := range slots {
		if w.slotOf["s"][slot] != 1 {
			t.Errorf("%s, write %d, %v: slot %s has %d runs", overlap, n, f, slot, w.slotOf["s"][slot])
		}
	}
	return died
}

// S2-10: a master is stopped before a write, and goes on when another has taken its place and what that one has done is purged. Each slot
// has one run.
func TestTwoMasters(t *testing.T) {
	for _, op := range []string{"put state", "start"} {
		for n := 1; n <= 3; n++ {
			t.Run(fmt.Sprintf("%s %d", op, n), func(t *testing.T) {
				virtual.Run(t, func(t *testing.T) { twoMasters(t, op, n) })
			})
		}
	}
}

func twoMasters(t *testing.T, op string, n int) {
	w := newWorld(t)
	time.Sleep(time.Second)
	first := w.master(nil)
	first.must("scheduleCreate", &ops.ScheduleCreateRequest{Schedule: everyMinute(ops.OverlapAllow)})
	first.kill()
	stopped, goOn := make(chan struct{}), make(chan struct{})
	old := w.masterStopped(func(got string) bool {
		if got == op {
			n--
		}
		if n == 0 && got == op {
			close(stopped)
			return true
		}
		return false
	}, goOn)
	<-stopped
	time.Sleep(15 * time.Second)
	m := w.master(nil)
	go m.janitor()
	time.Sleep(8 * time.Minute)
	close(goOn)
	time.Sleep(3 * time.Minute)
	old.kill()
	time.Sleep(2 * time.Minute)
	c := m.must("scheduleShow", &ops.ScheduleRequest{ID: "s"}).State.Counts
	m.kill()
	slots := w.slotsBegun("s")
	if int(c.Started) != len(slots) || len(slots) < 12 {
		t.Errorf("%d slots have runs, and %+v", len(slots), c)
	}
	for _, slot := range slots {
		if w.slotOf["s"][slot] != 1 {
			t.Errorf("slot %s has %d runs", slot, w.slotOf["s"][slot])
		}
	}
}

// S2-10: a schedule that is deleted leaves its runs alone, and one that is made later under its id is another: its slots have runs of their own.
func TestADeletedScheduleLeavesItsRuns(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.takes = -1
		time.Sleep(time.Second)
		m := w.master(nil)
		defer m.kill()
		s := everyMinute(ops.OverlapAllow)
		m.must("scheduleCreate", &ops.ScheduleCreateRequest{Schedule: s})
		time.Sleep(3*time.Minute + time.Second)
		if late := w.stats.SlotLate.Read(); late.Count != 3 || late.Sum > 1 {
			t.Errorf("got %d slots, %v s late in all; want three in time", late.Count, late.Sum)
		}
		a := m.must("scheduleDelete", &ops.ScheduleRequest{ID: s.ID})
		if len(a.State.Running) != 3 || !strings.Contains(strings.Join(a.Warnings, " "), "3") {
			t.Errorf("got %d runs and %v, want that it tells of three", len(a.State.Running), a.Warnings)
		}
		w.mu.Lock()
		if len(w.keys) != 0 {
			t.Errorf("got keys %v, want none", w.keys)
		}
		w.mu.Unlock()
		time.Sleep(2 * time.Minute)
		if n := w.countBegun(); n != 3 {
			t.Errorf("%d runs were begun, want 3", n)
		}
		w.mu.Lock()
		for _, r := range w.runs {
			if r.status != "" {
				t.Errorf("a run of it has ended: %s", r.status)
			}
		}
		w.mu.Unlock()
		if a := m.ask("scheduleShow", &ops.ScheduleRequest{ID: s.ID}); a.Error == nil || a.Error.Code != schemas.CodeNotFound {
			t.Errorf("got %+v, want not_found", a)
		}
		m.must("scheduleCreate", &ops.ScheduleCreateRequest{Schedule: s})
		b := m.must("scheduleBackfill", &ops.ScheduleBackfillRequest{ID: s.ID, From: schemas.At(w.now().Add(-5 * time.Minute)), Until: schemas.At(w.now()), Overlap: ops.OverlapAllow})
		time.Sleep(time.Second)
		if n := w.countBegun(); n != 3+b.Slots {
			t.Errorf("%d runs were begun, want 3 and %d", n, b.Slots)
		}
	})
}

// 100,000 slots that were missed are counted at once, in one note, and the latest thousand are made up for at ten a second.
func TestALongStop(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.takes = 10 * time.Millisecond
		time.Sleep(time.Second)
		m := w.master(nil)
		s := everyMinute(ops.OverlapBufferAll)
		m.must("scheduleCreate", &ops.ScheduleCreateRequest{Schedule: s})
		m.kill()
		w.ahead = 101_000*time.Minute + 30*time.Second
		m = w.master(nil)
		defer m.kill()
		time.Sleep(10 * time.Second)
		c := m.must("scheduleShow", &ops.ScheduleRequest{ID: s.ID}).State.Counts
		if c.Missed != 100_000 {
			t.Errorf("got %+v, want 100,000 missed", c)
		}
		if c.Started < 50 || c.Started > 110 {
			t.Errorf("got %+v, want about ten starts a second", c)
		}
		time.Sleep(100 * time.Second)
		if c = m.must("scheduleShow", &ops.ScheduleRequest{ID: s.ID}).State.Counts; c.Started < 1000 || c.Missed != 100_000 {
			t.Errorf("got %+v, want all others done", c)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if i := slices.IndexFunc(w.notes, func(o ops.Operation) bool { return o.Kind == ops.OperationSlotsMissed }); i < 0 || w.notes[i].Count != 100_000 {
			t.Errorf("got notes %+v, want one of 100,000 slots that were missed", w.notes)
		}
	})
}

// What somebody else has written into the bucket is told of, and harms nobody else; a deletion clears it away.
func TestDamagedKeys(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		w := newWorld(t)
		time.Sleep(time.Second)
		m := w.master(nil)
		good := everyMinute(ops.OverlapSkip)
		m.must("scheduleCreate", &ops.ScheduleCreateRequest{Schedule: good})
		other := good
		other.ID = "state"
		m.must("scheduleCreate", &ops.ScheduleCreateRequest{Schedule: other})
		w.mu.Lock()
		w.put(Key("text"), []byte("hello"))
		w.put(Key("empty"), []byte(`{"schedule":{"id":"empty"}}`))
		w.put(Key("other"), []byte(`{"schedule":{"id":"s"}}`))
		w.put("schedule.=zz", []byte(`{}`))
		w.mu.Unlock()
		m.kill()
		w.mu.Lock()
		w.put(stateKey("state"), []byte(`[]`))
		w.mu.Unlock()
		m = w.master(nil)
		defer m.kill()
		time.Sleep(2*time.Minute + time.Second)
		for _, id := range []string{"text", "empty", "other", "state"} {
			a := m.must("scheduleShow", &ops.ScheduleRequest{ID: id})
			if len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], "is not served") {
				t.Errorf("%s: got %+v, want a warning", id, a)
			}
			if a := m.ask("scheduleTrigger", &ops.ScheduleTriggerRequest{ID: id}); a.Error == nil || a.Error.Code != schemas.CodeConflict || a.Error.Hint == "" {
				t.Errorf("%s: got %+v, want a refusal", id, a)
			}
			m.must("scheduleDelete", &ops.ScheduleRequest{ID: id})
		}
		if c := m.must("scheduleShow", &ops.ScheduleRequest{ID: "s"}).State.Counts; c.Done != 2 {
			t.Errorf("got %+v, want that the others are served", c)
		}
	})
}

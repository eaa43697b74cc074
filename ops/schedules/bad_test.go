package schedules

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// What cannot be is refused with the field and the way out, and nothing is stored.
func TestBadInput(t *testing.T) {
	const start = `"action":{"start":{"type":"quick"}}`
	schedule := func(rest string) string { return `{"schedule":{"id":"x",` + rest + `}}` }
	long := strings.Repeat("é", 128)
	for _, tc := range []struct {
		name, verb, body string
		code             schemas.Code
		field            string
	}{
		{"a cron that never fires", "scheduleCreate", schedule(`"times":{"cron":["0 0 30 2 *"]},` + start), schemas.CodeInvalid, "schedule.times.cron[0]"},
		{"a zone that does not exist", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"],"timeZone":"Mars/Olympus"},` + start), schemas.CodeInvalid, "schedule.times.timeZone"},
		{"an interval of zero", "scheduleCreate", schedule(`"times":{"every":[{"every":0}]},` + start), schemas.CodeInvalid, "schedule.times.every[0].every"},
		{"only instants of the past", "scheduleCreate", schedule(`"times":{"at":["1999-01-01T00:00:00Z"]},` + start), schemas.CodeInvalid, "schedule.times"},
		{"no times", "scheduleCreate", schedule(start), schemas.CodeInvalid, "schedule.times"},
		{"times and a window", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"window":{"opens":"02:00","length":3600},` + start), schemas.CodeInvalid, "schedule.window"},
		{"a window that cannot be", "scheduleCreate", schedule(`"window":{"opens":"25:00","length":3600},` + start), schemas.CodeInvalid, "schedule.window.opens"},
		{"no action", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"action":{}`), schemas.CodeInvalid, "schedule.action"},
		{"a start and a signal", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"action":{"start":{"type":"quick"},"signal":{"workflowId":"w","name":"n"}}`), schemas.CodeInvalid, "schedule.action.signal"},
		{"no type", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"action":{"start":{}}`), schemas.CodeInvalid, "schedule.action.start.type"},
		{"a run of its own", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"action":{"start":{"type":"quick","run":"r"}}`), schemas.CodeInvalid, "schedule.action.start.run"},
		{"a request id", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"action":{"start":{"type":"quick","requestId":"r"}}`), schemas.CodeInvalid, "schedule.action.start.requestId"},
		{"a start mode", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"action":{"start":{"type":"quick","startMode":"Manual"}}`), schemas.CodeInvalid, "schedule.action.start.startMode"},
		{"an attribute of its own", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"action":{"start":{"type":"quick","attributes":{"slot":"1"}}}`), schemas.CodeInvalid, "schedule.action.start.attributes.slot"},
		{"a request id of a signal", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"action":{"signal":{"workflowId":"w","name":"n","requestId":"1"}}`), schemas.CodeInvalid, "schedule.action.signal.requestId"},
		{"a signal without a name", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"action":{"signal":{"workflowId":"w"}}`), schemas.CodeInvalid, "schedule.action.signal.name"},
		{"a placeholder that does not exist", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"action":{"start":{"type":"quick","input":{"a":["${last.run}"]}}}`), schemas.CodeInvalid, "schedule.action.start.input"},
		{"a policy that does not exist", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"overlap":"queue",` + start), schemas.CodeInvalid, "schedule.overlap"},
		{"catchUp below the least", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"catchUp":1,` + start), schemas.CodeInvalid, "schedule.catchUp"},
		{"less than nothing remains", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"remaining":-1,` + start), schemas.CodeInvalid, "schedule.remaining"},
		{"an unknown field", "scheduleCreate", schedule(`"times":{"crons":["0 0 * * *"]},` + start), schemas.CodeInvalid, "schedule.times.crons"},
		{"no id", "scheduleCreate", `{"schedule":{"times":{"cron":["0 0 * * *"]},` + start + `}}`, schemas.CodeInvalid, "schedule.id"},
		{"an id of 257 bytes", "scheduleCreate", `{"schedule":{"id":"` + long + `x","times":{"cron":["0 0 * * *"]},` + start + `}}`, schemas.CodeInvalid, "schedule.id"},
		{"a control character", "scheduleCreate", `{"schedule":{"id":"a\nb","times":{"cron":["0 0 * * *"]},` + start + `}}`, schemas.CodeInvalid, "schedule.id"},
		{"a type that is deprecated", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"action":{"start":{"type":"old"}}`), schemas.CodeDeprecated, "schedule.action.start.type"},
		{"a type that is unknown", "scheduleCreate", schedule(`"times":{"cron":["0 0 * * *"]},"action":{"start":{"type":"new"}}`), schemas.CodeNotFound, "schedule.action.start.type"},
		{"another one of the id", "scheduleCreate", `{"schedule":{"id":"there","times":{"cron":["0 0 * * *"]},` + start + `}}`, schemas.CodeAlreadyExists, "schedule.id"},
		{"an update of none", "scheduleUpdate", schedule(`"times":{"cron":["0 0 * * *"]},` + start), schemas.CodeNotFound, "schedule.id"},
		{"an update by the second of two", "scheduleUpdate", `{"schedule":{"id":"there","times":{"cron":["0 5 * * *"]},` + start + `},"revision":1}`, schemas.CodeConflict, "revision"},
		{"a pause until a time that is past", "schedulePause", `{"id":"there","until":"1999-01-01T00:00:00Z"}`, schemas.CodeInvalid, "until"},
		{"a pause of none", "schedulePause", `{"id":"x"}`, schemas.CodeNotFound, "id"},
		{"a resume until", "scheduleResume", `{"id":"there","until":"2030-01-01T00:00:00Z"}`, schemas.CodeInvalid, "until"},
		{"a trigger of none", "scheduleTrigger", `{"id":"x"}`, schemas.CodeNotFound, "id"},
		{"a trigger with a policy that does not exist", "scheduleTrigger", `{"id":"there","overlap":"both"}`, schemas.CodeInvalid, "overlap"},
		{"a backfill without its beginning", "scheduleBackfill", `{"id":"there","until":"1999-01-01T00:00:00Z"}`, schemas.CodeInvalid, "from"},
		{"a backfill that ends before it begins", "scheduleBackfill", `{"id":"there","from":"1999-01-01T00:00:00Z","until":"1998-01-01T00:00:00Z"}`, schemas.CodeInvalid, "until"},
		{"a backfill of times to come", "scheduleBackfill", `{"id":"there","from":"1999-01-01T00:00:00Z","until":"2030-01-01T00:00:00Z"}`, schemas.CodeInvalid, "until"},
		{"a backfill of too many", "scheduleBackfill", `{"id":"there","from":"1990-01-01T00:00:00Z","until":"1999-01-01T00:00:00Z"}`, schemas.CodeInvalid, "until"},
		{"too many next times", "scheduleShow", `{"id":"there","next":1001}`, schemas.CodeInvalid, "next"},
		{"a deletion of none", "scheduleDelete", `{"id":"x"}`, schemas.CodeNotFound, "id"},
		{"no JSON", "scheduleShow", `id: there`, schemas.CodeInvalid, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				w := newWorld(t)
				time.Sleep(time.Second)
				w.requireTypes = true
				w.types["quick"] = &schemas.TypeInfo{Kind: schemas.WorkflowKind, Name: "quick"}
				w.types["old"] = &schemas.TypeInfo{Kind: schemas.WorkflowKind, Name: "old", Status: schemas.TypeDeprecated}
				m := w.master(nil)
				defer m.kill()
				there := everyMinute("")
				there.ID, there.Times.Cron[0] = "there", "0 * * * *"
				m.must("scheduleCreate", &ops.ScheduleCreateRequest{Schedule: there})
				m.must("schedulePause", &ops.ScheduleRequest{ID: "there"})
				m.must("scheduleResume", &ops.ScheduleRequest{ID: "there"})
				before := w.revision()
				a := m.say(tc.verb, tc.body)
				if a.Error == nil {
					t.Fatalf("got %+v, want a refusal", a)
				}
				t.Logf("%s (%s)", a.Error.Message, a.Error.Hint)
				if a.Error.Code != tc.code || a.Error.Field != tc.field {
					t.Errorf("got %s in field %q, want %s in %q", a.Error.Code, a.Error.Field, tc.code, tc.field)
				}
				if w.revision() != before {
					t.Error("something was written")
				}
			})
		})
	}
}

// Ids of any form are told apart, and what is shown has an id of a workflow that may be.
func TestIDs(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		w := newWorld(t)
		time.Sleep(time.Second)
		m := w.master(nil)
		defer m.kill()
		ids := []string{"a.b", "a*b", "a b", "a=2Eb", ">", "state", "a.state", strings.Repeat("é", 128), strings.Repeat("é", 127) + "è"}
		for _, id := range ids {
			s := everyMinute(ops.OverlapSkip)
			s.ID = id
			m.must("scheduleCreate", &ops.ScheduleCreateRequest{Schedule: s})
		}
		time.Sleep(2*time.Minute + 10*time.Second)
		wids := map[string]bool{}
		for _, id := range ids {
			a := m.must("scheduleShow", &ops.ScheduleRequest{ID: id})
			if a.State.Counts.Done != 2 || a.Record.Schedule.ID != id {
				t.Errorf("%q: got %+v of %q", id, a.State.Counts, a.Record.Schedule.ID)
			}
			for _, s := range a.State.Recent {
				if err := schemas.ValidateID("workflowId", s.WorkflowID); err != nil || wids[s.WorkflowID] {
					t.Errorf("%q: got workflow id %q: %v", id, s.WorkflowID, err)
				}
				wids[s.WorkflowID] = true
			}
		}
	})
}

// A slot whose start is refused for good is settled with the reason; one that is refused for now is tried again.
func TestRefusedStarts(t *testing.T) {
	for _, tc := range []struct {
		name  string
		err   error
		times int
		want  string
	}{
		{"a type that is deprecated since", schemas.Errorf(schemas.CodeDeprecated, "the type is deprecated"), 1, "01 refused, 02 done"},
		{"an id that somebody else uses", schemas.Errorf(schemas.CodeAlreadyStarted, "it is open"), 1, "01 refused, 02 done"},
		{"no room for now", schemas.Errorf(schemas.CodeLimit, "no room"), 2, "01 done, 02 done"},
		{"nobody there", schemas.Errorf(schemas.CodeUnavailable, "nobody"), 3, "01 done, 02 done"},
		{"too late for its time", schemas.Errorf(schemas.CodeInvalid, "too late").InField("notAfter"), 1, "01 done, 02 done"},
		{"nobody there for longer than it may be late", schemas.Errorf(schemas.CodeUnavailable, "nobody"), 6, "01 missed, 02 done"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				w := newWorld(t)
				time.Sleep(time.Second)
				times := tc.times
				w.refuse = func(*schemas.StartRequest) error {
					if times--; times >= 0 {
						return tc.err
					}
					return nil
				}
				m := w.master(nil)
				defer m.kill()
				s := everyMinute(ops.OverlapSkip)
				s.CatchUp = schemas.Duration(30 * time.Second)
				m.must("scheduleCreate", &ops.ScheduleCreateRequest{Schedule: s})
				time.Sleep(2*time.Minute + 30*time.Second)
				a := m.must("scheduleShow", &ops.ScheduleRequest{ID: s.ID})
				if got := tell(a); got != tc.want {
					t.Errorf("got %s, want %s: %+v", got, tc.want, a.State.Recent)
				}
				for _, r := range a.State.Recent {
					if (r.Outcome == ops.SlotDone) != (r.Reason == "") {
						t.Errorf("got %+v, want a reason for what was not done", r)
					}
				}
			})
		})
	}
}

// What is refused time and again for the same reason is told once, so that a schedule of each minute does not fill the
// stream of operations; all of it is counted.
func TestRefusedTimeAndAgain(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		w := newWorld(t)
		time.Sleep(time.Second)
		start := time.Now()
		w.refuse = func(*schemas.StartRequest) error {
			if time.Since(start) > 10*time.Minute {
				return schemas.Errorf(schemas.CodeAlreadyStarted, "it is open")
			}
			return schemas.Errorf(schemas.CodeDeprecated, "the type is deprecated")
		}
		m := w.master(nil)
		defer m.kill()
		s := everyMinute(ops.OverlapSkip)
		m.must("scheduleCreate", &ops.ScheduleCreateRequest{Schedule: s})
		time.Sleep(20*time.Minute + 30*time.Second)
		if c := m.must("scheduleShow", &ops.ScheduleRequest{ID: s.ID}).State.Counts; c.Refused != 20 {
			t.Errorf("got %+v, want 20 refused", c)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		var reasons []string
		for _, o := range w.notes {
			if o.Kind == ops.OperationSlotRefused {
				reasons = append(reasons, o.Reason)
			}
		}
		if len(reasons) != 2 || reasons[0] == reasons[1] {
			t.Errorf("got notes of %q, want one of each reason", reasons)
		}
	})
}

// A trigger that the overlap policy leaves out says so.
func TestATriggerThatIsSkipped(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.takes = time.Hour
		time.Sleep(time.Second)
		m := w.master(nil)
		defer m.kill()
		s := everyMinute(ops.OverlapSkip)
		s.Paused = true
		m.must("scheduleCreate", &ops.ScheduleCreateRequest{Schedule: s})
		q := &ops.ScheduleTriggerRequest{ID: s.ID}
		if a := m.must("scheduleTrigger", q); !a.Changed || len(a.Warnings) > 0 {
			t.Errorf("got changed %v, warnings %q", a.Changed, a.Warnings)
		}
		time.Sleep(time.Second)
		a := m.must("scheduleTrigger", q)
		if len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], "it is skipped: run ") {
			t.Errorf("got warnings %q, want why it is not done", a.Warnings)
		}
	})
}

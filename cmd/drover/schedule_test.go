package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/schedules"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// scheduling answers the verbs of schedules that change something, and keeps what was asked last.
type scheduling struct {
	*service
	created ops.ScheduleCreateRequest
	updated ops.ScheduleUpdateRequest
	has     ops.Schedule // what scheduleShow tells
	refusal *schemas.Error
}

func newScheduling(t *testing.T) *scheduling {
	t.Helper()
	s := &scheduling{service: newService(t)}
	answer := func(is ops.Schedule) any {
		if s.refusal != nil {
			return ops.ScheduleResponse{Error: s.refusal}
		}
		return ops.ScheduleResponse{
			Record: &ops.ScheduleRecord{Schedule: is, Incarnation: "i", CreatedAt: at(0)}, Revision: 8,
			NextTimes: []schemas.Timestamp{at(0), at(86400)}, Warnings: []string{
				"both days must match",
			}, Changed: true,
		}
	}
	on(s.service, "scheduleCreate", func(q ops.ScheduleCreateRequest) any {
		s.created = q
		return answer(q.Schedule)
	})
	on(s.service, "scheduleUpdate", func(q ops.ScheduleUpdateRequest) any {
		s.updated = q
		return answer(q.Schedule)
	})
	on(s.service, "scheduleShow", func(q ops.ScheduleRequest) any {
		return ops.ScheduleResponse{Record: &ops.ScheduleRecord{Schedule: s.has}, Revision: 7}
	})
	return s
}

// What the flags say is what is asked for; the answer has the next times with their offset, and
// warnings.
func TestScheduleCreate(t *testing.T) {
	s := newScheduling(t)
	s.drover(
		"", "schedule", "create", "nightly", "--cron", "0 3 1 * MON", "--zone", "Europe/Berlin", "--type",
		"report",
	).want(t, cli.ExitDone,
		"created schedule nightly\nwarning: both days must match\n"+
			"next  2026-01-02 04:04:05 +01:00 Fri\n      2026-01-03 04:04:05 +01:00 Sat\n")
	three := int64(3)
	hour := schemas.Seconds(3600)
	start := func(q schemas.StartRequest) ops.ScheduleAction {
		return ops.ScheduleAction{Start: &q}
	}
	for name, tt := range map[string]struct {
		args []string
		want ops.Schedule
	}{
		"times": {
			[]string{
				"--cron", "0 3 * * *", "--cron", "@hourly", "--every", "24h+3h", "--at",
				"2026-12-24T18:00:00+01:00", "--from", "2026-01-01T00:00:00Z", "--until",
				"2027-01-01T00:00:00Z", "--jitter", "1h", "--type", "report",
			},
			ops.Schedule{Times: &ops.ScheduleTimes{
				Cron:   []string{"0 3 * * *", "@hourly"},
				Every:  []ops.ScheduleInterval{{Every: 24 * hour, Offset: 3 * hour}},
				At:     []schemas.Timestamp{1798131600e9},
				From:   1767225600e9,
				Until:  1798761600e9,
				Jitter: hour,
			}, Action: start(schemas.StartRequest{Type: "report"})},
		},
		"window": {
			[]string{
				"--window", "02:00+1h", "--period", "week", "--trigger-every", "5m", "--zone", "Asia/Tokyo",
				"--type", "report",
			},
			ops.Schedule{
				Window: &ops.ScheduleWindow{
					Opens: "02:00", Length: hour, Every: hour / 12, Period: "week", TimeZone: "Asia/Tokyo",
				},
				Action: start(schemas.StartRequest{Type: "report"}),
			},
		},
		"window of a cron expression": {
			[]string{"--window", "+1h", "--period", "0 9 * * 1", "--type", "report"},
			ops.Schedule{
				Window: &ops.ScheduleWindow{
					Length: hour, Period: "0 9 * * 1",
				}, Action: start(schemas.StartRequest{Type: "report"}),
			},
		},
		"start": {
			[]string{
				"--every", "1h", "--type", "report", "--type-version", "2", "--id", "r", "--input", `{"n": 1}`,
				"--tag", "x", "--attribute", "k=v",
			},
			ops.Schedule{Times: &ops.ScheduleTimes{
				Every: []ops.ScheduleInterval{{Every: hour}},
			}, Action: start(schemas.StartRequest{
				Type: "report", TypeVersion: "2", WorkflowID: "r", Input: schemas.Payload(`{"n": 1}`),
				TagList: []string{"x"}, Attributes: map[string]string{"k": "v"},
			})},
		},
		"signal with start": {
			[]string{
				"--every", "1h", "--type", "cart", "--id", "c", "--signal", "add", "--signal-input", "1",
			},
			ops.Schedule{Times: &ops.ScheduleTimes{
				Every: []ops.ScheduleInterval{{Every: hour}},
			}, Action: start(schemas.StartRequest{
				Type: "cart", WorkflowID: "c", Signal: &schemas.StartSignal{
					Name: "add", Input: schemas.Payload("1"),
				},
			})},
		},
		"signal": {
			[]string{"--every", "1h", "--signal", "wake", "--workflow", "w", "--input", "1"},
			ops.Schedule{Times: &ops.ScheduleTimes{
				Every: []ops.ScheduleInterval{{Every: hour}},
			}, Action: ops.ScheduleAction{
				Signal: &schemas.SignalRequest{WorkflowID: "w", Name: "wake", Input: schemas.Payload("1")},
			}},
		},
		"the rest": {
			[]string{
				"--every", "1h", "--type", "t", "--overlap", "bufferOne", "--catch-up", "1h",
				"--pause-on-failure", "--remaining", "3", "--paused", "--note", "n",
			},
			ops.Schedule{
				Times: &ops.ScheduleTimes{
					Every: []ops.ScheduleInterval{{Every: hour}},
				}, Action: start(schemas.StartRequest{Type: "t"}),
				Overlap: ops.OverlapBufferOne, CatchUp: hour, PauseOnFailure: true, Remaining: &three,
				Paused: true, Note: "n",
			},
		},
	} {
		s.drover("", append([]string{"schedule", "create", "a b"}, tt.args...)...).done(t)
		tt.want.ID = "a b"
		if d := cmp.Diff(tt.want, s.created.Schedule); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	r := s.drover("", "schedule", "create", "nightly", "--cron", "0 3 * * *", "--type", "t", "--json")
	for _, want := range []string{
		`"revision":8`, `"warnings":["both days must match"]`, `"nextTimes":["2026-01-02T03:04:05Z"`,
	} {
		if r.code != cli.ExitDone || !strings.Contains(r.stdout, want) {
			t.Errorf("want %s in %+v", want, r)
		}
	}
}

// A refusal names the flag in the place of the field, and with a file the field.
func TestScheduleRefused(t *testing.T) {
	s := newScheduling(t)
	s.refusal = schemas.Errorf(
		schemas.CodeInvalid, "times.cron[0]: it never fires",
	).InField("times.cron[0]").
		WithHint("take another day in times.cron[0]")
	s.drover("", "schedule", "create", "a", "--cron", "0 0 31 2 *", "--type", "t").
		want(t, cli.ExitUsage, "", "--cron[0]: it never fires", "take another day in --cron[0]")
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(
		file, []byte("times: {cron: '0 0 31 2 *'}\naction: {start: {type: t}}\n"), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	s.drover(
		"", "schedule", "create", "a", "--file", file,
	).want(t, cli.ExitUsage, "", "times.cron[0]: it never fires")
}

// An update reads, changes what the flags say, and names the revision that it has read.
func TestScheduleUpdate(t *testing.T) {
	s := newScheduling(t)
	s.has = ops.Schedule{
		ID: "a", Times: &ops.ScheduleTimes{Cron: []string{"0 3 * * *"}, TimeZone: "Europe/Berlin"},
		Action:  ops.ScheduleAction{Start: &schemas.StartRequest{Type: "t", TagList: []string{"x"}}},
		Overlap: ops.OverlapAllow, Note: "old",
	}
	s.drover(
		"", "schedule", "update", "a", "--cron", "30 3 * * *", "--type-version", "2", "--note", "",
	).done(t)
	want := ops.Schedule{
		ID: "a", Times: &ops.ScheduleTimes{Cron: []string{"30 3 * * *"}, TimeZone: "Europe/Berlin"},
		Action: ops.ScheduleAction{
			Start: &schemas.StartRequest{Type: "t", TypeVersion: "2", TagList: []string{"x"}},
		},
		Overlap: ops.OverlapAllow,
	}
	if d := cmp.Diff(want, s.updated.Schedule); d != "" || s.updated.Revision != 7 {
		t.Errorf("revision %d %s", s.updated.Revision, d)
	}
	s.drover("", "schedule", "update", "a", "--window", "02:00+1h").done(t)
	if got := s.updated.Schedule; got.Times != nil || got.Window == nil ||
		got.Window.Opens != "02:00" {
		t.Errorf("got %+v, want the window in the place of the times", got)
	}
	s.drover(
		"times: {every: 1h}\naction: {signal: {workflowId: w, name: s}}\n", "schedule", "update", "a",
		"--file", "-",
	).done(t)
	if got := s.updated.Schedule; got.ID != "a" || got.Action.Start != nil || got.Overlap != "" {
		t.Errorf("got %+v, want what the file says and nothing else", got)
	}
	s.refusal = schemas.Errorf(
		schemas.CodeConflict, "somebody else has changed it",
	).WithHint("read it again")
	s.drover("", "schedule", "update", "a", "--paused").want(
		t, cli.ExitFailed, "", "somebody else has changed it", "read it again",
	)
}

// The other verbs say what is asked for, and tell what was done.
func TestScheduleVerbs(t *testing.T) {
	s := newService(t)
	var asked ops.ScheduleRequest
	changed, warnings := true, []string(nil)
	for _, verb := range []string{"schedulePause", "scheduleResume", "scheduleDelete"} {
		on(s, verb, func(q ops.ScheduleRequest) any {
			asked = q
			return ops.ScheduleResponse{Changed: changed, Warnings: warnings}
		})
	}
	var triggered ops.ScheduleTriggerRequest
	on(s, "scheduleTrigger", func(q ops.ScheduleTriggerRequest) any {
		triggered = q
		return ops.ScheduleResponse{Changed: true}
	})
	var filled ops.ScheduleBackfillRequest
	on(s, "scheduleBackfill", func(q ops.ScheduleBackfillRequest) any {
		filled = q
		return ops.ScheduleResponse{Slots: 7}
	})
	s.drover(
		"", "schedule", "pause", "a b", "--until", "2026-12-24T18:00:00Z", "--reason", "why",
	).want(t, cli.ExitDone, "paused schedule \"a b\"\n")
	if asked.ID != "a b" || asked.Until != 1798135200e9 || asked.Reason != "why" {
		t.Errorf("asked %+v", asked)
	}
	s.drover("", "schedule", "resume", "a").want(t, cli.ExitDone, "resumed schedule a\n")
	warnings = []string{"runs that go on: 2"}
	s.drover("", "schedule", "delete", "a").want(
		t, cli.ExitDone, "deleted schedule a\nwarning: runs that go on: 2\n",
	)
	warnings = nil
	changed = false
	s.drover("", "schedule", "pause", "a").want(t, cli.ExitDone, "was paused before: schedule a\n")
	s.drover("", "schedule", "resume", "a", "--json").want(t, cli.ExitDone, "{}\n")
	s.drover(
		"", "schedule", "trigger", "a", "--overlap", "allow", "--request-id", "r",
	).want(t, cli.ExitDone, "triggered schedule a\n")
	if triggered.Overlap != ops.OverlapAllow || triggered.RequestID != "r" {
		t.Errorf("triggered %+v", triggered)
	}
	s.drover(
		"", "schedule", "backfill", "a", "2026-11-01", "2026-11-08T00:00:00Z",
	).want(t, cli.ExitDone, "7 times to do for schedule a\n")
	if filled.From != 1793491200e9 || filled.Until != 1794096000e9 || filled.Overlap != "" {
		t.Errorf("filled %+v", filled)
	}
}

func TestScheduleShow(t *testing.T) {
	s := newService(t)
	two := int64(2)
	var asked ops.ScheduleRequest
	on(s, "scheduleShow", func(q ops.ScheduleRequest) any {
		if asked = q; q.ID == "gone" {
			return ops.ScheduleResponse{
				Error: schemas.Errorf(schemas.CodeNotFound, "there is no schedule %q", q.ID),
			}
		}
		return ops.ScheduleResponse{
			Record: &ops.ScheduleRecord{
				Schedule: ops.Schedule{
					ID: "nightly", Times: &ops.ScheduleTimes{
						Cron: []string{"0 3 * * *"}, TimeZone: "Europe/Berlin",
						Except: []ops.ScheduleException{{Date: "2026-12-25"}},
					},
					Action: ops.ScheduleAction{Start: &schemas.StartRequest{Type: "report"}}, Remaining: &two,
					Paused: true, Note: "the warehouse moves",
				},
				CreatedAt: at(0), UpdatedAt: at(60), Identity: "ann",
			},
			State: &ops.ScheduleState{
				Running: []ops.ScheduleSlot{{Slot: at(1), WorkflowID: "nightly/1"}},
				Recent: []ops.ScheduleSlot{
					{Slot: at(1), Outcome: ops.SlotRunning, WorkflowID: "nightly/1"},
					{Slot: at(0), Outcome: ops.SlotSkipped, Reason: "a run was open", Manual: "n"},
				},
				Counts: ops.ScheduleCounts{Started: 3, Skipped: 1},
			},
			NextTimes: []schemas.Timestamp{at(86400), at(2 * 86400)}, TimeZones: "2026a",
		}
	})
	s.drover("", "schedule", "show", "nightly", "--next", "2").want(t, cli.ExitDone, `schedule    nightly
times       0 3 * * *, with exceptions Europe/Berlin
action      start report
overlap     skip
remaining   2
paused      until it is resumed
note        the warehouse moves
created     2026-01-02 04:04:05 +01:00 Fri
changed     2026-01-02 04:05:05 +01:00 Fri by ann
time zones  2026a
counts      started 3, skipped 1
running     2026-01-02 04:04:06 +01:00 Fri nightly/1
next        2026-01-03 04:04:05 +01:00 Sat
            2026-01-04 04:04:05 +01:00 Sun

last times
  TIME                            OUTCOME              WORKFLOW   REASON
  2026-01-02 04:04:06 +01:00 Fri  running              nightly/1  -
  2026-01-02 04:04:05 +01:00 Fri  skipped (asked for)  -          a run was open
`)
	if asked.Next != 2 {
		t.Errorf("asked %+v", asked)
	}
	waiting := &ops.ScheduleResponse{
		Record: &ops.ScheduleRecord{},
		State:  &ops.ScheduleState{Buffered: make([]ops.ScheduleSlot, 1000)},
	}
	text := string(schedules.ScheduleText(waiting))
	if strings.Count(text, "waiting") != schedules.MostSlots+1 || !strings.Contains(text, "and 980 more") {
		t.Errorf("got\n%s", text)
	}
	s.drover("", "schedule", "show", "gone").want(t, cli.ExitFailed, "", `there is no schedule "gone"`)
	if r := s.drover("", "schedule", "show", "nightly", "--json"); !strings.Contains(
		r.stdout, `"counts":{"started":3,"skipped":1}`,
	) {
		t.Errorf("got %+v", r)
	}
}

// A list fits a terminal of 80 columns.
func TestScheduleList(t *testing.T) {
	s := newService(t)
	var all []ops.ScheduleLine
	on(
		s, "scheduleList",
		func(q ops.ScheduleListRequest) any { return ops.ScheduleListResponse{Schedules: all} },
	)
	s.drover("", "schedule", "list").want(
		t, cli.ExitDone, "", `no schedules: "drover schedule create" makes one`,
	)
	all = []ops.ScheduleLine{
		{
			Schedule: ops.Schedule{ID: "the nightly report of the warehouse", Times: &ops.ScheduleTimes{
				Cron: []string{"0 3 * * *", "0 4 * * *"}, TimeZone: "Europe/Berlin",
			}},
			Next: at(0), Last: &ops.ScheduleSlot{Outcome: ops.SlotDone}, Running: 1,
		},
		{Schedule: ops.Schedule{
			ID: "b", Window: &ops.ScheduleWindow{Opens: "02:00", Length: schemas.Seconds(3600)},
			Paused: true,
		}},
		{Schedule: ops.Schedule{
			ID:    "c",
			Times: &ops.ScheduleTimes{Every: []ops.ScheduleInterval{{Every: schemas.Seconds(300)}}},
		}},
	}
	s.drover("", "schedule", "list").want(t, cli.ExitDone,
		`ID                                     TIMES                               NEXT                  LAST  RUNNING
"the nightly report of the warehouse"  0 3 * * *; 0 4 * * * Europe/Berlin  2026-01-02 03:04:05Z  done  1
b                                      once a day 02:00+1h                 paused                -     0
c                                      every 5m                            -                     -     0
`)
	r := s.wide(80, "schedule", "list")
	for line := range strings.Lines(r.stdout) {
		if n := utf8.RuneCountInString(line) - 1; n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if strings.Count(s.drover("", "schedule", "list", "--json").stdout, "\n") != 3 {
		t.Error("want a document a line")
	}
}

// Bad input: what is wrong on the command line is said with the flag and the way out, and nothing
// is asked for.
func TestScheduleUsage(t *testing.T) {
	s := newService(t)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no command":   {[]string{"schedule"}, "a command is missing"},
		"near command": {[]string{"schedule", "lst"}, `there is no command "schedule lst"; did you mean list?`},
		"no id":        {[]string{"schedule", "create"}, "ID is missing"},
		"empty id":     {[]string{"schedule", "show", ""}, "ID is empty"},
		"no type": {
			[]string{"schedule", "create", "a", "--every", "1h"},
			"--type is missing: say which workflows are started",
		},
		"no times": {
			[]string{"schedule", "create", "a", "--type", "t"}, "there are no times: say when, by --cron",
		},
		"times and window": {
			[]string{"schedule", "create", "a", "--type", "t", "--every", "1h", "--window", "02:00+1h"},
			"a schedule has times or a window",
		},
		"window without length": {
			[]string{"schedule", "create", "a", "--type", "t", "--window", "02:00"},
			`--window is "02:00": want when it opens`,
		},
		"interval": {
			[]string{"schedule", "create", "a", "--type", "t", "--every", "0"},
			`--every is "0": want a distance such as 5m`,
		},
		"instant": {
			[]string{"schedule", "create", "a", "--type", "t", "--at", "2026-12-24"},
			`--at is "2026-12-24": want an instant such as`,
		},
		"from": {
			[]string{"schedule", "create", "a", "--type", "t", "--from", "soon"},
			`--from is "soon": want an instant such as`,
		},
		"zone alone": {
			[]string{"schedule", "create", "a", "--type", "t", "--zone", "UTC"},
			"--zone is given without times",
		},
		"overlap": {[]string{
			"schedule", "create", "a", "--type", "t", "--every", "1h", "--overlap", "queue",
		}, `--overlap is "queue"; want skip, bufferOne`},
		"overlap of a slot": {
			[]string{"schedule", "trigger", "a", "--overlap", "queue"}, `--overlap is "queue"`,
		},
		"signal alone": {
			[]string{"schedule", "create", "a", "--every", "1h", "--signal", "s"},
			"--signal needs --workflow ID, or --type and --id",
		},
		"workflow without name": {
			[]string{"schedule", "create", "a", "--every", "1h", "--workflow", "w"}, "--signal is missing",
		},
		"workflow and type": {[]string{
			"schedule", "create", "a", "--every", "1h", "--workflow", "w", "--signal", "s", "--type", "t",
		}, "--workflow signals a workflow that is open"},
		"input": {
			[]string{"schedule", "create", "a", "--every", "1h", "--type", "t", "--input", "{"},
			"--input is not JSON",
		},
		"catch-up of 0": {
			[]string{"schedule", "create", "a", "--every", "1h", "--type", "t", "--catch-up", "0"},
			"0 is not possible here",
		},
		"no file": {
			[]string{"schedule", "create", "a", "--file", "/nowhere"}, "/nowhere: no such file",
		},
		"update of nothing": {
			[]string{"schedule", "update", "a"}, "a flag is missing: say what is to be changed",
		},
		"backfill": {
			[]string{"schedule", "backfill", "a", "soon", "later"}, "FROM is soon: want a time such as",
		},
		"backfill without end": {[]string{"schedule", "backfill", "a", "24h"}, "TO is missing"},
		"pause": {
			[]string{"schedule", "pause", "a", "--until", "soon"}, `--until is "soon": want an instant`,
		},
		"stdin twice": {
			[]string{"schedule", "create", "a", "--file", "-", "--input", "-"},
			"only one of --file, --input and --signal-input",
		},
	} {
		stdin := "times: {every: 1h}\naction: {start: {type: t}}\n"
		r := s.drover(stdin, tt.args...)
		if r.code != cli.ExitUsage || !strings.Contains(r.stderr, tt.want) {
			t.Errorf("%s: got %+v, want %q", name, r, tt.want)
		}
	}
}

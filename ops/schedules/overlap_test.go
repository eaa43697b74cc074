package schedules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Acceptance 2 of schedules: what becomes of slots, as scripts. A schedule is due each minute, from 00:01 on. A line is a time and what is done
// then; the lines of want are what has become of slots, in the order of their settling, and what runs and waits in the end.
func TestOverlap(t *testing.T) {
	for _, tc := range []struct {
		name     string
		schedule ops.Schedule
		takes    time.Duration // negative: the runs stay open
		fails    bool
		script   string
		want     string
	}{
		{
			name: "skip leaves out what comes while a run is open", takes: 140 * time.Second,
			script: "05:30 end", want: "02 skipped, 03 skipped, 01 done, 05 skipped; running 04",
		},
		{
			name: "skip with short runs", takes: time.Second,
			script: "02:30 end", want: "01 done, 02 done",
		},
		{
			name: "bufferOne keeps one", takes: 140 * time.Second, schedule: ops.Schedule{Overlap: ops.OverlapBufferOne},
			script: "06:10 end", want: "03 skipped, 01 done, 05 skipped, 02 done; running 04; waiting 06",
		},
		{
			name: "bufferAll keeps all", takes: 140 * time.Second, schedule: ops.Schedule{Overlap: ops.OverlapBufferAll},
			script: "06:10 end", want: "01 done, 02 done; running 03; waiting 04 05 06",
		},
		{
			name: "allow has all open", takes: 140 * time.Second, schedule: ops.Schedule{Overlap: ops.OverlapAllow},
			script: "05:10 end", want: "01 done, 02 done; running 03 04 05",
		},
		{
			name: "cancelOther asks the open run to end", takes: -1, schedule: ops.Schedule{Overlap: ops.OverlapCancelOther},
			script: "03:30 end", want: "01 failed canceled, 02 failed canceled; running 03",
		},
		{
			name: "terminateOther ends it", takes: -1, schedule: ops.Schedule{Overlap: ops.OverlapTerminateOther},
			script: "03:30 end", want: "01 failed terminated, 02 failed terminated; running 03",
		},
		{
			name: "a failure pauses, and resume goes on", takes: time.Second, fails: true, schedule: ops.Schedule{PauseOnFailure: true},
			script: "03:30 resume\n04:30 end", want: "01 failed failed, 02 skipped, 03 skipped, 04 failed failed; paused",
		},
		{
			name: "a failure does not pause unless it is asked for", takes: time.Second, fails: true,
			script: "02:30 end", want: "01 failed failed, 02 failed failed",
		},
		{
			name: "a pause until a time", takes: time.Second,
			script: "01:30 pause 03:30\n05:30 end", want: "01 done, 02 skipped, 03 skipped, 04 done, 05 done; paused",
		},
		{
			name: "a trigger is done although the schedule is paused", takes: time.Second,
			script: "00:30 pause\n01:30 trigger\n02:30 end", want: "01 skipped, manual done, 02 skipped; paused",
		},
		{
			name: "a trigger has a policy of its own", takes: 140 * time.Second,
			script: "01:20 trigger\n01:30 trigger allow\n01:40 trigger bufferAll\n02:30 end",
			want:   "manual skipped, 02 skipped; running 01 manual; waiting manual",
		},
		{
			name: "what remains is done, and no more", takes: time.Second, schedule: ops.Schedule{Remaining: new(int64(2))},
			script: "05:30 end", want: "01 done, 02 done; remaining 0",
		},
		{
			name: "a trigger uses up one of what remains", takes: time.Second, schedule: ops.Schedule{Remaining: new(int64(2))},
			script: "00:30 trigger\n05:30 trigger\n06:30 end", want: "manual done, 01 done, manual done; remaining 0",
		},
		{
			name: "slots that are left out use up nothing", takes: 90 * time.Second, schedule: ops.Schedule{Remaining: new(int64(2))},
			script: "06:30 end", want: "02 skipped, 01 done, 03 done; remaining 0",
		},
		{
			name: "a backfill does the slots of the past in their order", takes: time.Second, schedule: ops.Schedule{Paused: true},
			script: "03:30 backfill 01:00 03:00\n04:30 end", want: "01 skipped, 02 skipped, 03 skipped, manual 01 done, manual 02 done, 04 skipped; paused",
		},
		{
			name: "a backfill waits for what is open", takes: -1,
			script: "03:30 backfill 01:00 03:20 bufferAll\n03:40 end", want: "02 skipped, 03 skipped; running 01; waiting manual 01 manual 02 manual 03",
		},
		{
			name: "an update takes slots from now on, and keeps the counters", takes: time.Second,
			script: "02:30 update */5\n10:30 end", want: "01 done, 02 done, 05 done, 10 done",
		},
		{
			name: "an update of the policy holds for what waits", takes: -1, schedule: ops.Schedule{Overlap: ops.OverlapBufferAll},
			script: "03:30 overlap allow\n03:40 end", want: "running 01 02 03",
		},
		{
			name: "a new master makes up for what was missed", takes: time.Second,
			script: "01:30 kill\n04:30 begin\n05:30 end", want: "01 done, 03 skipped, 04 skipped, 02 done, 05 done",
		},
		{
			name: "what is too late is missed", takes: time.Second, schedule: ops.Schedule{CatchUp: schemas.Duration(time.Minute), Overlap: ops.OverlapAllow},
			script: "01:30 kill\n05:30 begin\n06:30 end", want: "01 done, 04 missed, 05 done, 06 done",
		},
		{
			name: "an end is learnt after a change of the master", takes: 90 * time.Second,
			script: "01:30 kill\n01:40 begin\n03:30 end", want: "02 skipped, 01 done; running 03",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				if got := playOut(t, tc.schedule, tc.takes, tc.fails, tc.script); got != tc.want {
					t.Errorf("got  %s\nwant %s", got, tc.want)
				}
			})
		})
	}
}

// playOut plays a script, and tells what has become of the slots.
func playOut(t *testing.T, s ops.Schedule, takes time.Duration, fails bool, script string) string {
	w := newWorld(t)
	w.takes, w.fails = takes, fails
	s.ID, s.Times = "s", &ops.ScheduleTimes{Cron: []string{"* * * * *"}}
	s.Action.Start = &schemas.StartRequest{Type: "quick"}
	midnight := w.now()
	time.Sleep(time.Second)
	m := w.master(nil)
	defer func() { m.kill() }()
	m.must("scheduleCreate", &ops.ScheduleCreateRequest{Schedule: s})
	clock := func(text string) time.Time {
		var min, sec int
		if _, err := fmt.Sscanf(text, "%d:%d", &min, &sec); err != nil {
			t.Fatalf("%q is no time: %v", text, err)
		}
		return midnight.Add(time.Duration(min)*time.Minute + time.Duration(sec)*time.Second)
	}
	for line := range strings.SplitSeq(script, "\n") {
		f := append(strings.Fields(line), "", "", "")
		time.Sleep(clock(f[0]).Sub(w.now()))
		switch f[1] {
		case "kill":
			m.kill()
		case "begin":
			m = w.master(nil)
		case "resume":
			m.must("scheduleResume", &ops.ScheduleRequest{ID: "s"})
		case "pause":
			q := &ops.ScheduleRequest{ID: "s"}
			if f[2] != "" {
				q.Until = schemas.At(clock(f[2]))
			}
			m.must("schedulePause", q)
		case "trigger":
			m.must("scheduleTrigger", &ops.ScheduleTriggerRequest{ID: "s", Overlap: ops.OverlapPolicy(f[2]), RequestID: line})
		case "backfill":
			m.must("scheduleBackfill", &ops.ScheduleBackfillRequest{ID: "s", From: schemas.At(clock(f[2])), Until: schemas.At(clock(f[3])), Overlap: ops.OverlapPolicy(f[4])})
		case "update":
			s.Times = &ops.ScheduleTimes{Cron: []string{f[2] + " * * * *"}}
			m.must("scheduleUpdate", &ops.ScheduleUpdateRequest{Schedule: s})
		case "overlap":
			s.Overlap = ops.OverlapPolicy(f[2])
			m.must("scheduleUpdate", &ops.ScheduleUpdateRequest{Schedule: s})
			time.Sleep(time.Second)
		}
	}
	return tell(m.must("scheduleShow", &ops.ScheduleRequest{ID: "s"}))
}

// tell is what a schedule has done in a line.
func tell(a *ops.ScheduleResponse) string {
	name := func(s ops.ScheduleSlot) string {
		minute := s.Slot.Time().Format("04")
		switch {
		case s.Manual == "":
			return minute
		case s.Slot.Time().Second() == 0:
			return "manual " + minute
		}
		return "manual"
	}
	var settled, parts []string
	for i := len(a.State.Recent) - 1; i >= 0; i-- {
		s := a.State.Recent[i]
		text := name(s) + " " + string(s.Outcome)
		if s.Outcome == ops.SlotFailed {
			text += " " + string(s.Status)
		}
		settled = append(settled, text)
	}
	if len(settled) > 0 {
		parts = append(parts, strings.Join(settled, ", "))
	}
	list := func(what string, all []ops.ScheduleSlot) {
		for _, s := range all {
			what += " " + name(s)
		}
		if len(all) > 0 {
			parts = append(parts, what)
		}
	}
	list("running", a.State.Running)
	list("waiting", a.State.Buffered)
	if a.Record.Schedule.Paused {
		parts = append(parts, "paused")
	}
	if r := a.Record.Schedule.Remaining; r != nil {
		parts = append(parts, fmt.Sprintf("remaining %d", *r))
	}
	return strings.Join(parts, "; ")
}

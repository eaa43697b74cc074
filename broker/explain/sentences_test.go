package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// begun is when the runs of these tests begin: 2023-11-14T22:13:20Z.
const begun = schemas.Timestamp(1_700_000_000_000_000_000)

func later(d time.Duration) schemas.Timestamp { return begun.Add(schemas.Duration(d)) }

func state(change func(*execution.State)) *execution.State {
	s := &execution.State{
		WorkflowID: "w", Run: "r1", Start: &schemas.WorkflowStarted{WorkflowType: "order"}, StartBase: begun,
		Decision: execution.Decision{ScheduledBase: begun},
	}
	change(s)
	return s
}

func task(attempt int, change func(*execution.Activity)) *execution.State {
	return state(func(s *execution.State) {
		a := &execution.Activity{
			ScheduledID:   5,
			ScheduledBase: begun,
			Attempt:       attempt,
			Scheduled: &schemas.ActivityScheduled{
				ActivityID: "a", ActivityType: "work", List: "default", TaskPriority: 1,
			},
		}
		change(a)
		s.Activities = map[int64]*execution.Activity{5: a}
	})
}

// Each situation has its sentence, whatever else is true of the run.
func TestWhy(t *testing.T) {
	plain := func(*execution.State) {}
	for _, c := range []struct {
		want string
		s    *execution.State
		in   Situation
	}{
		{want: `its decider left nothing open: it waits for a signal; it never times out`, s: state(plain)},
		{
			want: `a decider of type "order" is about to be asked`,
			s:    state(func(s *execution.State) { s.Decision.Scheduled = 2 }),
		},
		{
			want: `no decider for type "order" is listening (decision wanted since 2023-11-14T22:13:20Z (1m0s)); start one in namespace "ns"`,
			s:    state(plain), in: Situation{NoPoller: true, BackingUp: true},
		},
		{
			want: `no decider for type "order" is listening (decision wanted since 2023-11-14T22:13:20Z (1m0s)); start one in namespace "ns"`,
			s:    state(plain), in: Situation{Asked: true, Reasks: 1},
		},
		{
			want: `a decider of type "order" is being asked since 2023-11-14T22:14:10Z (10s); it failed or timed out 1 time before` +
				`; everything that it decided was refused, no such timer`,
			s:  state(func(s *execution.State) { s.Decision.Failures, s.Decision.Refusal = 1, "no such timer" }),
			in: Situation{Asked: true, AskedAt: later(50 * time.Second)},
		},
		{
			want: `a decider of type "order" is being asked since 2023-11-14T22:14:10Z (10s); it failed or timed out 4 times before` +
				`; its code does not do what the history says (NON_DETERMINISTIC)`,
			s:  state(func(s *execution.State) { s.Decision.Failures, s.Decision.Mismatches = 4, 2 }),
			in: Situation{Asked: true, AskedAt: later(50 * time.Second)},
		},
		{
			want: `a decider of type "order" is deciding since 2023-11-14T22:14:10Z (10s)`,
			s:    state(plain),
			in:   Situation{Asked: true, AskedAt: later(50 * time.Second), Confirmed: true, Reasks: 3},
		},
		{
			want: `it is paused (for a while); go on with: drover resume w`,
			s:    state(func(s *execution.State) { s.Paused = &schemas.WorkflowPaused{Reason: "for a while"} }),
			in:   Situation{NoPoller: true},
		},
		{
			want: `no worker has taken activity "a" of type "work" from list "default" since 2023-11-14T22:13:20Z (1m0s)`,
			s:    task(1, func(*execution.Activity) {}),
		},
		{
			want: `activity "a" of type "work" begins its attempt 2 at 2023-11-14T22:15:20Z`,
			s:    task(2, func(a *execution.Activity) { a.NotBefore = later(2 * time.Minute) }),
		},
		{
			want: `lock "door" is held by workflow "other" since 2023-11-14T22:13:20Z (1m0s)`,
			s: state(func(s *execution.State) {
				s.Locks = map[string]*execution.Lock{"door": {Lock: "door", Run: "r1", EventID: 3, Since: begun}}
			}),
			in: Situation{Lock: func(string) *schemas.LockRecord {
				return &schemas.LockRecord{Holders: []schemas.LockPlace{{WorkflowID: "other", Since: begun}}}
			}},
		},
		{
			want: `it is closed: failed at 2023-11-14T22:14:20Z, reason: broken`,
			s: state(func(s *execution.State) {
				s.Status = schemas.StatusFailed
				s.Close = &schemas.Event{
					Time:       later(time.Minute),
					Attributes: &schemas.WorkflowFailed{Reason: "broken"},
				}
			}),
			in: Situation{NoPoller: true},
		},
	} {
		c.in.Now, c.in.Namespace, c.in.Config = later(
			time.Minute,
		), "ns", &execution.Config{
			MaxEvents: 10_000,
		}
		if d := cmp.Diff(c.want, Why(c.s, &c.in)); d != "" {
			t.Error(d)
		}
	}
}

// How a list stands is asked for only where the sentence is about a task that waits.
func TestWaitsForWorker(t *testing.T) {
	now := later(time.Minute)
	for _, c := range []struct {
		s     *execution.State
		why   string
		waits bool
	}{
		{task(1, func(*execution.Activity) {}), noWorker + `"a"`, true},
		{task(1, func(*execution.Activity) {}), "it is paused", false},
		{task(1, func(a *execution.Activity) { a.Started = 6 }), noWorker + `"a"`, false},
		{task(2, func(a *execution.Activity) { a.NotBefore = now + 1 }), noWorker + `"a"`, false},
	} {
		if got := WaitsForWorker(c.s, c.why, now); (got != nil) != c.waits {
			t.Errorf("%s: got %v, want some: %v", c.why, got, c.waits)
		}
	}
}

// The clause tells of the last failure that is tried again, and of no other.
func TestTries(t *testing.T) {
	events := []schemas.Event{
		{Attributes: &schemas.DeciderFailed{Reason: "panic"}},
		{
			Attributes: &schemas.ActivityRetryScheduled{
				ScheduledEventID: 5,
				Attempt:          1,
				Cause:            strings.Repeat("ä", mostOfReason),
				Details:          schemas.Text("a line\nand a stack"),
			},
		},
		{
			Attributes: &schemas.ActivityRetryScheduled{
				ScheduledEventID: 7,
				Attempt:          1,
				Cause:            "another",
			},
		},
	}
	in := &Situation{Now: later(time.Minute)}
	if TriesOf(task(1, func(*execution.Activity) {}), in) != nil {
		t.Error("a first attempt counts as one that is tried again")
	}
	again := task(2, func(a *execution.Activity) { a.NotBefore = later(time.Hour) })
	want := `; attempt 1 of activity "a" failed with: ` + strings.Repeat("ä", mostOfReason/2) + "…: a line"
	if d := cmp.Diff(want, TriesOf(again, in).Last(events)); d != "" {
		t.Error(d)
	}
	decider := TriesOf(
		state(func(s *execution.State) { s.Decision.Failures = 1 }),
		&Situation{BackingUp: true},
	)
	if got := decider.Last(events); got != "; it failed with: panic" {
		t.Error(got)
	}
	if got := decider.Last(nil); got != "" {
		t.Error(got)
	}
}

// An owner remembers so many dead letters and no more; those of former tasks say nothing of one
// that is open.
func TestLetters(t *testing.T) {
	var l Letters
	s := task(1, func(*execution.Activity) {})
	note := func(wid string, at schemas.Timestamp) { l.Note(wid, execution.Report{}, at, "malformed", "x") }
	l.Note("w", execution.Report{}, later(time.Second), execution.DeadStaleToken, "x")
	l.Note("w", execution.Signal{}, later(time.Second), "malformed", "x")
	note("other", later(time.Second))
	note("w", begun-1)
	if got := l.Of(s); got != "" {
		t.Errorf("got %q", got)
	}
	note("w", later(time.Second))
	want := "; a worker's report of 2023-11-14T22:13:21Z is a dead letter (malformed: x), see: drover dead"
	if got := l.Of(s); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range mostLetters {
		note(fmt.Sprint("other", i), later(time.Second))
	}
	if got := l.Of(s); got != "" {
		t.Errorf("got %q of one that is long ago", got)
	}
}

// What an audit is told of a run in its history: its activities' deadlines, and when somebody must
// have asked for it.
func TestAuditStored(t *testing.T) {
	s := task(1, func(a *execution.Activity) {
		a.Started, a.StartedBase = 6, begun
		a.Scheduled.StartToCloseTimeout, a.Scheduled.HeartbeatTimeout = schemas.Seconds(
			3600,
		), schemas.Seconds(
			60,
		)
	})
	s.Decision.Scheduled = 7
	now := later(time.Minute)
	a := schemas.AuditRun{WorkflowID: "w"}
	AuditStored(&a, s, &execution.Config{MaxEvents: 10_000}, now, true, schemas.Seconds(10))
	if a.Status != schemas.StatusOpen || a.Busy || a.Decision != schemas.DecisionForlorn ||
		len(a.Activities) != 1 {
		t.Fatalf("got %+v", a)
	}
	// Heartbeats are in no history, so the owner that loads a run counts from now.
	if got, want := a.Activities[0].Deadline, now.Add(schemas.Seconds(60)); got != want {
		t.Errorf("the deadline is %s, want %s", got, want)
	}
	if want := now.Add(schemas.Seconds(10)); a.Due != want {
		t.Errorf("due at %s, want %s", a.Due, want)
	}
}

// How a list stands tells what to do.
func TestTaskList(t *testing.T) {
	for want, i := range map[string]*schemas.TaskListInfo{
		"; start a worker of that list":                                                                  nil,
		"; nobody works on that list, where 2 tasks wait: start a worker":                                {Pending: 2},
		"; its workers are busy with 1 task, 1 task waits: start more of them":                           {Working: 1, Pending: 1},
		"; 1 worker waits there for tasks, and may not know the type: see the log":                       {Workers: 1, Working: 3},
		"; the consumer p1 of the list is not there, as somebody has deleted it: " + schemas.MissingHint: {Missing: []string{"p1"}, Workers: 1},
	} {
		if got := TaskList(i); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

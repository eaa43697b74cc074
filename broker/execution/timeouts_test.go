package execution

import (
	"strconv"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

const sec = time.Second

func seconds(n float64) schemas.Duration { return schemas.Seconds(n) }

var activityTimeouts = []struct {
	name     string
	activity schemas.ScheduleActivity
	wait     time.Duration // before it starts
	started  bool
	rings    time.Duration // after that
	want     string
}{
	{
		"schedule-to-start",
		schemas.ScheduleActivity{ScheduleToStartTimeout: seconds(7)},
		0, false, 7 * sec,
		"ActivityScheduledTimeout A; DeciderScheduled",
	},
	{
		"start-to-close",
		schemas.ScheduleActivity{StartToCloseTimeout: seconds(9)},
		3 * sec, true, 9 * sec,
		"ActivityTimedOut A START_TO_CLOSE; DeciderScheduled",
	},
	{
		"start-to-close counts from the start only",
		schemas.ScheduleActivity{StartToCloseTimeout: seconds(9), ScheduleToStartTimeout: seconds(60)},
		59 * sec, true, 9 * sec, "ActivityTimedOut A START_TO_CLOSE; DeciderScheduled",
	},
	{
		"schedule-to-close, never started",
		schemas.ScheduleActivity{ScheduleToCloseTimeout: seconds(11)},
		0, false, 11 * sec,
		"ActivityTimedOut A SCHEDULE_TO_CLOSE; DeciderScheduled",
	},
	{
		"schedule-to-close bounds the whole",
		schemas.ScheduleActivity{ScheduleToCloseTimeout: seconds(11), StartToCloseTimeout: seconds(10)},
		4 * sec, true, 7 * sec, "ActivityTimedOut A SCHEDULE_TO_CLOSE; DeciderScheduled",
	},
	{
		"schedule-to-close before schedule-to-start",
		schemas.ScheduleActivity{ScheduleToCloseTimeout: seconds(5), ScheduleToStartTimeout: seconds(6)},
		0, false, 5 * sec, "ActivityTimedOut A SCHEDULE_TO_CLOSE; DeciderScheduled",
	},
	{
		"heartbeat",
		schemas.ScheduleActivity{HeartbeatTimeout: seconds(2), StartToCloseTimeout: schemas.Unlimited},
		40 * sec, true, 2 * sec,
		"ActivityTimedOut A HEARTBEAT; DeciderScheduled",
	},
	{
		"a heartbeat is not missed before the start",
		schemas.ScheduleActivity{HeartbeatTimeout: seconds(2), ScheduleToStartTimeout: seconds(30)},
		0, false, 30 * sec, "ActivityScheduledTimeout A; DeciderScheduled",
	},
	{
		"nanoseconds count",
		schemas.ScheduleActivity{StartToCloseTimeout: 1},
		0, true, 1,
		"ActivityTimedOut A START_TO_CLOSE; DeciderScheduled",
	},
	{
		"start delay, then schedule-to-start",
		schemas.ScheduleActivity{StartDelay: seconds(5), ScheduleToStartTimeout: seconds(7)},
		6 * sec, false, 6 * sec,
		"ActivityScheduledTimeout A; DeciderScheduled",
	},
	{
		"no start delay is none",
		schemas.ScheduleActivity{StartDelay: schemas.Unlimited, ScheduleToStartTimeout: seconds(7)},
		0, false, 7 * sec,
		"ActivityScheduledTimeout A; DeciderScheduled",
	},
}

// Each of the four fires by itself, at its instant, with an event of its own, and wakes the decider.
func TestActivityTimeouts(t *testing.T) { // S1-13, S1-14, S1-32, S1-34, S1-42, P-15
	for _, tt := range activityTimeouts {
		t.Run(tt.name, func(t *testing.T) {
			tt.activity.ActivityID, tt.activity.ActivityType = "A", "work"
			w := decided(t, &tt.activity)
			w.after(tt.wait)
			w.do(AlarmFired{}) // lets a start delay end
			if tt.started {
				w.report("A", schemas.ReportStarted)
			}
			w.mark = len(w.events)
			w.rings(tt.rings, tt.want)
			w.after(time.Hour)
			w.do(AlarmFired{})
			w.follows("")
			if a := w.s.ActivityByID("A"); a != nil {
				t.Fatalf("the activity is open: %+v", a)
			}
		})
	}
}

func TestActivityTimeoutNamesItsEvents(t *testing.T) { // S1-13, S1-14
	w := working(t, schemas.ScheduleActivity{StartToCloseTimeout: seconds(9)})
	w.after(9 * sec)
	w.do(AlarmFired{})
	got := *w.events[len(w.events)-2].Attributes.(*schemas.ActivityTimedOut)
	if want := (schemas.ActivityTimedOut{TimeoutType: schemas.TimeoutStartToClose, ScheduledEventID: 5, StartedEventID: 6}); got.ScheduledEventID != want.ScheduledEventID ||
		got.StartedEventID != want.StartedEventID || got.TimeoutType != want.TimeoutType {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	w = decided(t, &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", ScheduleToStartTimeout: seconds(9)})
	w.after(9 * sec)
	w.do(AlarmFired{})
	late := *w.events[len(w.events)-2].Attributes.(*schemas.ActivityScheduledTimeout)
	if want := (schemas.ActivityScheduledTimeout{TimeoutType: schemas.TimeoutScheduleToStart, ScheduledEventID: 5}); late != want {
		t.Fatalf("got %+v, want %+v", late, want)
	}
}

// The run's defaults stand in WorkflowStarted, a decision overrides them, NONE lifts them.
func TestActivityDefaults(t *testing.T) { // S1-48, S1-32
	none := schemas.Unlimited
	defaults := &schemas.ActivityDefaults{
		List: "main", ScheduleToStartTimeout: seconds(1), StartToCloseTimeout: seconds(2), ScheduleToCloseTimeout: seconds(3), HeartbeatTimeout: seconds(4),
	}
	for _, tt := range []struct {
		name                     string
		defaults                 *schemas.ActivityDefaults
		decision                 schemas.ScheduleActivity
		list                     string
		toStart, run, total, hit schemas.Duration
	}{
		{"nothing said", &schemas.ActivityDefaults{List: "main"}, schemas.ScheduleActivity{}, "main", 0, seconds(600), 0, 0},
		{"no defaults at all", nil, schemas.ScheduleActivity{List: "PCI"}, "PCI", 0, seconds(600), 0, 0},
		{"the run's defaults", defaults, schemas.ScheduleActivity{}, "main", seconds(1), seconds(2), seconds(3), seconds(4)},
		{
			"the decision's", defaults, schemas.ScheduleActivity{
				List: "PCI", ScheduleToStartTimeout: seconds(10), StartToCloseTimeout: seconds(20), ScheduleToCloseTimeout: seconds(30), HeartbeatTimeout: seconds(40),
			}, "PCI", seconds(10), seconds(20), seconds(30), seconds(40),
		},
		{"one of the decision's", defaults, schemas.ScheduleActivity{StartToCloseTimeout: seconds(20)}, "main", seconds(1), seconds(20), seconds(3), seconds(4)},
		{
			"no limits", defaults, schemas.ScheduleActivity{
				ScheduleToStartTimeout: none, StartToCloseTimeout: none, ScheduleToCloseTimeout: none, HeartbeatTimeout: none,
			}, "main", none, none, none, none,
		},
		{"a default without limit", &schemas.ActivityDefaults{List: "main", StartToCloseTimeout: none}, schemas.ScheduleActivity{}, "main", 0, none, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := begin(t, func(q *schemas.StartRequest) { q.ActivityDefaults = tt.defaults })
			tt.decision.ActivityID, tt.decision.ActivityType = "A", "work"
			w.decide(&tt.decision)
			e := last[*schemas.ActivityScheduled](w)
			if e.List != tt.list || e.ScheduleToStartTimeout != tt.toStart || e.StartToCloseTimeout != tt.run ||
				e.ScheduleToCloseTimeout != tt.total || e.HeartbeatTimeout != tt.hit {
				t.Fatalf("got %+v, want %+v", e, tt)
			}
			w.report("A", schemas.ReportStarted)
			want := w.s.StartBase.Add(seconds(365 * 24 * 3600))
			for _, limit := range []schemas.Duration{tt.run, tt.total, tt.hit} {
				if limit.Limited() {
					want = min(want, w.now.Add(limit))
				}
			}
			if got := w.s.NextDue(&w.c); got != want {
				t.Fatalf("next due in %s, want in %s", got.Sub(w.now), want.Sub(w.now))
			}
		})
	}
}

func TestWorkflowTimeout(t *testing.T) { // S1-4, S1-31, S1-38, P-15
	const year = 365 * 24 * time.Hour
	limit := func(d schemas.Duration) func(*schemas.StartRequest) {
		return func(q *schemas.StartRequest) { q.ExecutionStartToCloseTimeout = d }
	}
	for _, tt := range []struct {
		name  string
		limit schemas.Duration
		do    func(*world)
		after time.Duration // the start
	}{
		{"one year by default, nothing decided", 0, func(*world) {}, year},
		{"one year by default, an empty decision", 0, func(w *world) { w.decide() }, year},
		{"explicit", seconds(3600), func(w *world) { w.decide() }, time.Hour},
		{"longer than the default", schemas.Duration(2 * year), func(w *world) { w.decide() }, 2 * year},
		{"with open work", seconds(3), func(w *world) { w.decide(activity("A"), timer("T", 60)); w.report("A", schemas.ReportStarted) }, 3 * sec},
		{"while a decider runs", seconds(3), func(w *world) { w.do(Taken{}) }, 3 * sec},
		{"while paused", seconds(3), func(w *world) { w.do(Pause{Request: &schemas.ExecutionRequest{}}) }, 3 * sec},
		{"before its timer at the same time", seconds(3), func(w *world) { w.decide(timer("T", 4)) }, 3 * sec},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := begin(t, limit(tt.limit))
			began := w.now
			tt.do(w)
			w.after(min(tt.after, 2*sec))
			w.mark = len(w.events)
			w.effects = nil
			w.rings(tt.after-w.now.Sub(began), "WorkflowTimedOut")
			if len(w.effects) != 1 || w.effects[0] != (Closed{}) {
				t.Fatalf("got effects %v, want Closed", w.effects)
			}
			if w.s.Status != schemas.StatusTimedOut || !w.s.Closed() || w.s.NextDue(&w.c) != 0 {
				t.Fatalf("status %s, next due %s; want timedOut and nothing due", w.s.Status, w.s.NextDue(&w.c))
			}
			if got := *last[*schemas.WorkflowTimedOut](w); got.TimeoutType != schemas.TimeoutStartToClose {
				t.Fatalf("got %+v", got)
			}
		})
	}
	t.Run("unlimited", func(t *testing.T) {
		w := begin(t, limit(schemas.Unlimited))
		w.decide()
		if due := w.s.NextDue(&w.c); due != 0 {
			t.Fatalf("next due %s, want nothing", due)
		}
		w.after(200 * year)
		w.do(AlarmFired{})
		w.follows("DeciderStarted; DeciderCompleted")
	})
	t.Run("the namespace's", func(t *testing.T) {
		c, s := Config{WorkflowTimeout: seconds(5)}.Defaults(), New("order-1", "run-1")
		events, _ := s.Step(&c, Start{Request: &schemas.StartRequest{WorkflowID: "order-1", Run: "run-1", Type: "order"}}, 1)
		if got := events[0].Attributes.(*schemas.WorkflowStarted).ExecutionStartToCloseTimeout; got != seconds(5) {
			t.Fatalf("got %s, want 5s in the event", got)
		}
	})
}

func TestDeciderTimeouts(t *testing.T) { // S1-8, S1-33, S1-34, S1-46
	within := func(start, toStart schemas.Duration) func(*schemas.StartRequest) {
		return func(q *schemas.StartRequest) {
			q.TaskStartToCloseTimeout, q.TaskScheduleToStartTimeout = start, toStart
		}
	}
	const timedOut = "DeciderTimedOut START_TO_CLOSE; DeciderScheduled"
	const neverRan = "DeciderTimedOut SCHEDULE_TO_START; DeciderScheduled"
	t.Run("ten seconds by default", func(t *testing.T) {
		w := begin(t)
		w.after(3 * sec)
		w.do(Taken{})
		w.since()
		w.rings(10*sec, timedOut)
	})
	t.Run("explicit", func(t *testing.T) {
		w := begin(t, within(seconds(300), 0))
		w.do(Taken{})
		w.since()
		w.rings(300*sec, timedOut)
	})
	t.Run("no limit", func(t *testing.T) {
		w := begin(t, within(schemas.Unlimited, 0))
		w.do(Taken{})
		w.rest(24 * time.Hour)
		w.follows("DeciderStarted")
	})
	t.Run("nobody listens, and nothing is written", func(t *testing.T) {
		w := begin(t)
		if got, want := w.s.NextDue(&w.c), w.s.StartBase.Add(w.s.Start.ExecutionStartToCloseTimeout); got != want {
			t.Fatalf("next due %s, want %s", got, want)
		}
		w.rest(24 * time.Hour)
		w.follows("")
	})
	t.Run("schedule-to-start", func(t *testing.T) {
		w := begin(t, within(0, seconds(4)))
		w.rings(4*sec, neverRan)
		w.rings(4*sec, neverRan)
		if got := w.s.Decision.Failures; got != 0 {
			t.Fatalf("got %d failures; a decider that never ran did not fail", got)
		}
		w.do(Taken{})
		w.follows("DeciderStarted")
		w.rings(10*sec, timedOut)
	})
	t.Run("schedule-to-start counts from when the task can be taken", func(t *testing.T) {
		w := begin(t, within(0, seconds(4)))
		w.do(Taken{})
		w.after(1 * sec)
		w.do(Signal{Name: "x"})
		w.after(8 * sec)
		w.answer()
		w.follows("DeciderStarted; Signal x; DeciderScheduled; DeciderCompleted")
		w.rings(4*sec, neverRan)
	})
	t.Run("schedule-to-start counts after the pause", func(t *testing.T) {
		w := begin(t, within(0, seconds(4)))
		w.do(Pause{Request: &schemas.ExecutionRequest{}})
		w.rest(time.Hour)
		w.do(Resume{Request: &schemas.ExecutionRequest{}})
		w.follows("WorkflowPaused OPERATOR_INITIATED; WorkflowResumed")
		w.rings(4*sec, neverRan)
	})
	t.Run("schedule-to-start counts after the backoff, else the decider would never be asked", func(t *testing.T) {
		w := begin(t, within(0, seconds(2)))
		w.c.DeciderBackoff = seconds(5)
		w.do(Taken{})
		w.do(Refuse{Cause: schemas.CauseInvalidDecision, Reason: "no reply"})
		w.follows("DeciderStarted; DeciderFailed INVALID_DECISION; DeciderScheduled")
		if wanted, _ := w.s.WantsDecider(&w.c); wanted.NotBefore != w.now.Add(seconds(5)) {
			t.Fatalf("wanted in %s, want in 5s", wanted.NotBefore.Sub(w.now))
		}
		w.rings(7*sec, neverRan)
	})
}

// A timeout while a decider runs adds one DeciderScheduled at once; what to do is left to the decider.
func TestTimeoutWhileDeciding(t *testing.T) { // S1-34, S1-36
	w := decided(t, &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", StartToCloseTimeout: seconds(5)}, timer("T", 5))
	w.report("A", schemas.ReportStarted)
	w.do(Signal{Name: "x"})
	w.do(Taken{})
	w.after(5 * sec)
	w.do(AlarmFired{})
	w.do(Taken{}) // must wait
	w.answer()
	w.do(Taken{})
	w.answer()
	w.follows("ActivityStarted A; Signal x; DeciderScheduled; DeciderStarted; ActivityTimedOut A START_TO_CLOSE; DeciderScheduled; " +
		"TimerExpired T; DeciderCompleted; DeciderStarted; DeciderCompleted")
}

// What is due at once and does not fit one record is left for the next ring, which is due at once; nothing is lost or told twice.
func TestFireFillsOneRecord(t *testing.T) {
	var timers []schemas.DecisionAttributes
	for i := range 10 {
		timers = append(timers, timer(strconv.Itoa(i), 60))
	}
	w := decided(t, timers...)
	w.c.Details = 3 * eventBudget
	w.after(time.Minute)
	w.do(AlarmFired{})
	w.follows("TimerExpired 0; DeciderScheduled; TimerExpired 1; TimerExpired 2")
	if next := w.s.NextDue(&w.c); next == 0 || next > w.now {
		t.Fatalf("the next ring is due in %s, want at once", next.Sub(w.now))
	}
	w.rest(0)
	w.follows("TimerExpired 3; TimerExpired 4; TimerExpired 5; TimerExpired 6; TimerExpired 7; TimerExpired 8; TimerExpired 9")
}

func timer(id string, after float64) *schemas.ScheduleTimer {
	return &schemas.ScheduleTimer{TimerID: id, StartToFireTimeout: schemas.Seconds(after)}
}

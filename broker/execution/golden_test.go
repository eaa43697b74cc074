package execution

import (
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

func activity(id string) *schemas.ScheduleActivity {
	return &schemas.ScheduleActivity{ActivityID: id, ActivityType: "work"}
}

func TestEmptyRun(t *testing.T) { // S1-44, S1-1, S1-2, S1-5, S1-6, S1-7
	w := begin(t)
	w.decide(&schemas.CompleteWorkflow{Result: schemas.Text(`"done"`)})
	w.want("WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
	if !w.s.Closed() || w.s.Status != schemas.StatusCompleted {
		t.Fatalf("status %q, want completed", w.s.Status)
	}
}

func TestTwoInParallelThenOne(t *testing.T) { // S1-45, S1-9, S1-10, S1-11, S1-35, S1-36, S1-37, S1-38, S1-40
	w := begin(t)
	windows := []int64{}
	window := func() {
		p := w.s.Decision.Previous
		windows = append(windows, p, w.s.Decision.Started)
	}
	w.decide(activity("A"), activity("B"))
	w.report("B", schemas.ReportStarted)
	w.report("A", schemas.ReportStarted)
	w.report("B", schemas.ReportSuccess)
	w.do(Taken{})
	window()
	w.report("A", schemas.ReportSuccess)
	w.answer(activity("C"))
	w.do(Taken{})
	window()
	w.report("C", schemas.ReportStarted)
	w.answer()
	w.report("C", schemas.ReportSuccess)
	w.do(Taken{})
	window()
	w.answer(&schemas.CompleteWorkflow{})
	w.want(
		"WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ActivityScheduled A", "ActivityScheduled B",
		"ActivityStarted B", "ActivityStarted A", "ActivitySuccess B", "DeciderScheduled", "DeciderStarted", "ActivitySuccess A",
		"DeciderScheduled", "DeciderCompleted", "ActivityScheduled C", "DeciderStarted", "ActivityStarted C", "DeciderCompleted",
		"ActivitySuccess C", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
	for i, want := range []int64{3, 11, 11, 16, 16, 21} {
		if windows[i] != want {
			t.Fatalf("windows %v, want 3-11, 11-16, 16-21", windows)
		}
	}
}

func TestDeciderTimesOut(t *testing.T) { // S1-46, S1-8, S1-33, S1-34, S1-39
	w := begin(t)
	w.do(Taken{})
	w.after(10*time.Second - 1)
	w.do(AlarmFired{})
	w.after(1)
	w.do(AlarmFired{})
	w.answer(&schemas.CompleteWorkflow{}) // its token has expired
	if d, ok := w.effects[len(w.effects)-1].(Dead); !ok || d.Reason != DeadLateDecision {
		t.Fatalf("the late decision was not parked: %v", w.effects)
	}
	w.decide(&schemas.CompleteWorkflow{})
	w.want("WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderTimedOut START_TO_CLOSE", "DeciderScheduled",
		"DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
}

func TestTimerCanceledBySignal(t *testing.T) { // S1-47, S1-16, S1-19, S1-21
	w := begin(t)
	w.decide(&schemas.ScheduleTimer{TimerID: "T", StartToFireTimeout: schemas.Seconds(60)})
	w.after(30 * time.Second)
	w.do(Signal{Name: "stop"})
	w.decide(&schemas.CancelTimer{TimerID: "T"})
	w.after(time.Hour)
	w.do(AlarmFired{})
	w.want("WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "TimerScheduled T", "Signal stop",
		"DeciderScheduled", "DeciderStarted", "DeciderCompleted", "TimerCanceled T")
}

func TestTimerExpiredBeforeItsCancel(t *testing.T) { // S1-47, S1-18, S1-20
	w := begin(t)
	w.decide(&schemas.ScheduleTimer{TimerID: "T", StartToFireTimeout: schemas.Seconds(5)})
	w.do(Signal{Name: "stop"})
	w.do(Taken{})
	w.after(5 * time.Second)
	w.do(AlarmFired{})
	w.answer(&schemas.CancelTimer{TimerID: "T"})
	w.want("WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "TimerScheduled T", "Signal stop",
		"DeciderScheduled", "DeciderStarted", "TimerExpired T", "DeciderScheduled", "DeciderCompleted",
		"TimerCancelFailed T TIMER_ID_UNKNOWN")
}

func TestTimerNameInUse(t *testing.T) { // S1-17
	w := begin(t)
	timer := &schemas.ScheduleTimer{TimerID: "T", StartToFireTimeout: schemas.Seconds(60)}
	w.decide(timer, timer)
	w.want("WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "TimerScheduled T",
		"TimerScheduleFailed T TIMER_ID_ALREADY_IN_USE", "DeciderScheduled")
}

package decider_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/schemas"
)

// large does not fit into a history.
var large = strings.Repeat("x", schemas.PayloadThreshold+50_000)

// pages is how many signals come that do not fit into one task, and pageOf one of them.
const pages = 12

var pageOf = strings.Repeat("p", 100_000)

// middle is between what ends by itself, after a minute and after longer.
const middle = 90 * time.Second

// behaviours are what every way to decide shows.
func behaviours() []behaviour {
	return []behaviour{
		{
			name:   "several signals before the first decision",
			acts:   []act{{0, signals("a", "b", "c")}},
			want:   `completed "Ada abc"`,
			course: "WorkflowStarted Signal Signal Signal WorkflowSuccess",
		}, {
			name:   "a signal while the run closes",
			acts:   []act{{middle, signals("a")}},
			lates:  1,
			want:   `completed "alate"`,
			course: "WorkflowStarted Signal Signal WorkflowSuccess",
			no:     map[string]string{"flow": "takes a signal by waiting for it"},
		}, {
			name:   "more events than a task holds",
			acts:   []act{{0, signals(manyPages()...)}, {middle, signals("end")}},
			want:   fmt.Sprintf(`completed "%d notes"`, pages+1),
			course: "WorkflowStarted " + strings.Repeat("Signal ", pages+1) + "WorkflowSuccess",
		}, {
			name:   "an activity with a large result",
			want:   fmt.Sprintf("completed %q", large),
			course: "WorkflowStarted ActivityScheduled ActivityStarted ActivitySuccess WorkflowSuccess",
		}, {
			name:   "an activity that fails twice",
			want:   `completed "at last"`,
			course: "WorkflowStarted ActivityStarted ActivityStarted ActivityStarted ActivitySuccess WorkflowSuccess",
		}, {
			name:   "an activity that fails",
			want:   `completed "it failed"`,
			course: "WorkflowStarted ActivityScheduled ActivityStarted ActivityFailed WorkflowSuccess",
		}, {
			name: "an activity that runs out of time",
			start: drover.StartOptions{ActivityDefaults: &schemas.ActivityDefaults{
				List: contract.DefaultList, StartToCloseTimeout: schemas.Duration(time.Minute),
			}},
			want:   `completed "too late"`,
			course: "WorkflowStarted ActivityScheduled ActivityStarted ActivityTimedOut WorkflowSuccess",
		}, {
			name: "activities that end in another order",
			want: `completed "short long"`,
			course: "WorkflowStarted ActivityScheduled ActivityScheduled ActivityStarted ActivityStarted " +
				"ActivitySuccess ActivitySuccess WorkflowSuccess",
			no: map[string]string{"flow": "each activity beside another is a run of its own"},
		}, {
			name: "a timer that fires beside one that is canceled",
			acts: []act{{20 * time.Second, startAgain}},
			want: `completed "rested"`,
			course: "WorkflowStarted TimerScheduled TimerScheduled TimerExpired TimerCanceled " +
				"ActivityScheduled ActivitySuccess WorkflowSuccess",
		}, {
			name:   "a cancel request while a timer runs",
			acts:   []act{{middle, cancel}},
			want:   "canceled",
			course: "WorkflowStarted TimerScheduled WorkflowCancelRequested WorkflowCanceled",
		}, {
			name: "a cancel request while an activity runs",
			acts: []act{{middle, cancel}},
			want: "canceled",
			course: "WorkflowStarted ActivityScheduled ActivityStarted WorkflowCancelRequested " +
				"ActivityCancelRequested ActivityCanceled WorkflowCanceled",
		}, {
			name:   "a child that completes",
			want:   `completed "good"`,
			course: "WorkflowStarted ChildScheduled ChildStarted ChildSuccess WorkflowSuccess",
		}, {
			name:   "a child that fails",
			want:   `completed "it failed"`,
			course: "WorkflowStarted ChildScheduled ChildStarted ChildFailed WorkflowSuccess",
		}, {
			name:   "a child whose id is taken",
			acts:   []act{{0, takeID}},
			want:   `completed "refused"`,
			course: "WorkflowStarted ChildScheduled ChildStartFailed WorkflowSuccess",
		}, {
			name:   "a parent that is terminated",
			acts:   []act{{middle, terminate}},
			want:   "terminated enough",
			course: "WorkflowStarted ChildScheduled ChildStarted WorkflowTerminated",
			also:   childIs(schemas.StatusTerminated),
		}, {
			name:   "a parent that is terminated politely",
			start:  drover.StartOptions{ChildPolicy: schemas.ChildRequestCancel},
			acts:   []act{{middle, terminate}},
			want:   "terminated enough",
			course: "WorkflowStarted ChildScheduled ChildStarted WorkflowTerminated",
			also:   childIs(schemas.StatusCanceled),
		}, {
			name: "a run that continues as new while signals come",
			start: drover.StartOptions{
				Continuation: &schemas.ContinuationPolicy{After: schemas.Duration(time.Hour)},
			},
			acts:   []act{{middle, signals("a")}, {2 * time.Hour, signals("end")}},
			lates:  4, // three make the owner ask again
			want:   `completed "alatelatelatelateend"`,
			course: "WorkflowStarted WorkflowContinuedAsNew WorkflowStarted WorkflowSuccess",
			also:   someUnread,
		},
	}
}

// signals sends signals named note, one after the other.
func signals(texts ...string) func(*stage) {
	return func(s *stage) {
		for _, text := range texts {
			s.must(s.open().Signal(s.t.Context(), "note", text))
		}
	}
}

func manyPages() (texts []string) {
	for range pages {
		texts = append(texts, pageOf)
	}
	return texts
}

// startAgain is refused, and does nothing to the run.
func startAgain(s *stage) {
	_, err := s.e.Client.Start(s.t.Context(), s.name, who{"Eve"}, &drover.StartOptions{ID: s.name})
	if !errors.Is(err, drover.ErrAlreadyStarted) {
		s.t.Errorf("%s: another start: got %v, want %v", s.name, err, drover.ErrAlreadyStarted)
	}
}

func cancel(s *stage) { s.must(s.open().Cancel(s.t.Context(), "enough")) }

func terminate(s *stage) {
	s.must(s.open().Terminate(s.t.Context(), &drover.TerminateOptions{Reason: "enough"}))
}

// takenID is the id of a run that is open all the time.
const takenID = "taken"

func takeID(s *stage) {
	_, err := s.e.Client.Start(s.t.Context(), "kid-waits", nil, &drover.StartOptions{ID: takenID})
	s.must(err)
}

// childIs compares how the child of the run has ended.
func childIs(want schemas.Status) func(*stage) {
	return func(s *stage) {
		for _, event := range s.e.History(s.name) {
			if a, ok := event.Attributes.(*schemas.ChildScheduled); ok {
				if o := s.e.Wait(s.e.Client.Run(a.WorkflowID, "")); o.Status != want {
					s.t.Errorf("%s: the child is %s, want %s", s.name, o.Status, want)
				}
			}
		}
	}
}

// someUnread wants that the run has continued before a decider had seen all of its signals.
func someUnread(s *stage) {
	for event, err := range s.run.History(s.t.Context(), drover.HistoryOptions{}) {
		s.must(err)
		if a, ok := event.Attributes.(*schemas.WorkflowContinuedAsNew); ok && a.UnreadSignals == 0 {
			s.t.Errorf("%s: the run has continued when all signals were read", s.name)
		}
	}
}

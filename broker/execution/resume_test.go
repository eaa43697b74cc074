package execution

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// What the last heartbeat has said is what the next attempt goes on from: of all that a retry repeats it comes first, and alone, or beside
// the words of a failure that leave room in the record, it always fits.
func TestWhatARetryRepeatsOfAHeartbeat(t *testing.T) { // S1-32
	for _, tc := range []struct {
		name            string
		room            int // half a record
		reason          string
		details, resume string
	}{
		{"a timeout, and the record takes it twice", 8, "", "half", "half"},
		{"a timeout, and the record takes it once", 7, "", "", "half"},
		{"a timeout, and it is larger than half a record", 3, "", "", "half"},
		{"a failure that fits beside it", 3, "no", "no", "half"},
		{"a failure that does not fit beside it", 2, "no", "no", ""},
		{"a failure without words", 1, "-", "", "half"},
	} {
		w := working(t, schemas.ScheduleActivity{Retry: &schemas.RetryPolicy{}, HeartbeatTimeout: seconds(5)})
		w.c.Details = tc.room
		w.s.Beat(&schemas.Heartbeat{Token: "run-1.5.1", Details: schemas.Payload("half")}, "", w.now)
		switch tc.reason {
		case "":
			w.after(5 * sec)
			w.do(AlarmFired{})
		case "-":
			w.report("A", schemas.ReportFailed)
		default:
			w.report("A", schemas.ReportFailed, func(r *schemas.Report) { r.Details = schemas.Payload(tc.reason) })
		}
		got := last[*schemas.ActivityRetryScheduled](w)
		if string(got.Details) != tc.details || string(got.HeartbeatDetails) != tc.resume {
			t.Errorf("%s: got details %q, and %q for the next attempt; want %q and %q", tc.name, got.Details, got.HeartbeatDetails, tc.details, tc.resume)
		}
	}
}

// An attempt that never beat tells what was said before it, if it is the last.
func TestWhatTheLastAttemptTells(t *testing.T) { // S1-32
	w := working(t, schemas.ScheduleActivity{Retry: &schemas.RetryPolicy{MaximumAttempts: 2}, StartToCloseTimeout: seconds(5)})
	w.s.Beat(&schemas.Heartbeat{Token: "run-1.5.1", Details: schemas.Payload("half")}, "", w.now)
	w.s.Beat(&schemas.Heartbeat{Token: "run-1.5.1"}, "", w.now) // one without details unsays nothing
	w.after(time.Minute)
	w.do(AlarmFired{})
	w.after(time.Minute)
	w.do(AlarmFired{})
	w.report("A", schemas.ReportStarted)
	w.after(time.Minute)
	w.do(AlarmFired{})
	w.follows("ActivityRetryScheduled A START_TO_CLOSE; ActivityStarted A 2; ActivityTimedOut A START_TO_CLOSE; DeciderScheduled")
	if got := w.events[len(w.events)-2].Attributes.(*schemas.ActivityTimedOut); string(got.Details) != "half" {
		t.Errorf("got details %q, want those of the first attempt", got.Details)
	}
}

// What several activities have said shares one record, whichever of them said nothing.
func TestDetailsShareARecord(t *testing.T) {
	w := decided(t,
		&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", StartToCloseTimeout: seconds(1)},
		&schemas.ScheduleActivity{ActivityID: "B", ActivityType: "work", StartToCloseTimeout: seconds(2)},
		&schemas.ScheduleActivity{ActivityID: "C", ActivityType: "work", StartToCloseTimeout: seconds(3)})
	w.c.Details = 400
	for _, a := range w.s.OpenActivities() {
		w.report(a.Scheduled.ActivityID, schemas.ReportStarted)
		if id := a.Scheduled.ActivityID; id != "B" {
			w.s.Beat(&schemas.Heartbeat{Token: Token("run-1", a.ScheduledID, 1), Details: schemas.Payload(id + strings.Repeat("x", 300))}, "", w.now)
		}
	}
	w.after(time.Minute)
	w.do(AlarmFired{})
	var got []string
	for _, e := range w.events {
		if a, ok := e.Attributes.(*schemas.ActivityTimedOut); ok {
			got = append(got, string(a.Details))
		}
	}
	if len(got) != 3 || len(got[0]) != 301 || got[1] != "" || got[2] != "" {
		t.Errorf("got details %q, want those of A alone", got)
	}
}

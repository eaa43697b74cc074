package execution

import (
	"testing"

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
			w.do(Ring{})
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

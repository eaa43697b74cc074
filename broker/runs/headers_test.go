package runs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// What a record's headers tell is what a list reads.
func TestHeadersOfRecords(t *testing.T) {
	const started schemas.Timestamp = 1714979289123456789
	s := execution.New("order 17", "r1")
	s.Start = &schemas.WorkflowStarted{WorkflowType: "an order.v2"}
	s.StartedAt, s.Status = started, schemas.StatusOpen
	h := natsconn.Header{}
	Describe(h, s, []schemas.Event{{ID: 7, Attributes: &schemas.DeciderScheduled{}}})
	want := schemas.ExecutionInfo{WorkflowID: "order 17", Run: "r1", Type: "an order.v2", Status: schemas.StatusOpen, StartedAt: started, Events: 7, StartMode: "Manual"}
	m := natsconn.Stored{Subject: subject.Namespace("default").History(3, "order 17", "r1"), Header: h}
	got, err := InfoFrom(m)
	if err != nil || !IsRecord(&m) || !cmp.Equal(want, got) {
		t.Errorf("%v %s", err, cmp.Diff(want, got))
	}
	for _, bad := range []string{"", "open", "open 7 x", "open seven 1 t", "open 7 + t", "open 7 1 %zz"} {
		if _, err := InfoFrom(natsconn.Stored{Subject: subject.Namespace("default").History(3, "w", "r1"), Header: natsconn.Header{schemas.StatusHeader: {bad}}}); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}

// S2-8: a list tells what began a run, whatever the headers had to say of it.
func TestStartModesInHeaders(t *testing.T) {
	parent := &schemas.Execution{WorkflowID: "p", Run: "r0"}
	for _, started := range []schemas.WorkflowStarted{
		{},
		{StartMode: schemas.ModeManual},
		{StartMode: schemas.ModeSchedule},
		{StartMode: schemas.ModeAutoStart},
		{StartMode: schemas.ModeContinuation},
		{ParentWorkflowExecution: parent},
		{ParentWorkflowExecution: parent, StartMode: schemas.ModeChild},
		{Replays: &schemas.ReplayOf{Run: "r0"}},
		{StartMode: schemas.ModeReplay, FirstExecutionRun: "r0"},
	} {
		s := execution.New("w", "r1")
		started.WorkflowType = "order"
		s.Start, s.StartedAt, s.Status = &started, 1, schemas.StatusOpen
		h := natsconn.Header{}
		Describe(h, s, []schemas.Event{{ID: 7, Attributes: &schemas.DeciderScheduled{}}})
		got, err := InfoFrom(natsconn.Stored{Subject: subject.Namespace("default").History(3, "w", "r1"), Header: h})
		if err != nil || got.StartMode != started.Mode() {
			t.Errorf("%+v: got %q, %v, want %q", started, got.StartMode, err, started.Mode())
		}
	}
}

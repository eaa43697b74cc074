package decider

import (
	"testing"

	"github.com/droverhq/drover/schemas"
)

// No body brings the worker down, and no window shows more than its task says.
func FuzzTask(f *testing.F) {
	dt := &schemas.DecisionTask{
		WorkflowID: "w", Run: "r", Type: "order", Token: "t", PreviousStartedID: 1, StartedID: 3,
		Events: []schemas.Event{{ID: 1, Attributes: &schemas.Signal{}}, {ID: 2, Attributes: &schemas.Signal{}}, {ID: 3, Attributes: &schemas.DeciderStarted{}}},
	}
	packed, err := schemas.Marshal(dt)
	if err != nil {
		f.Fatal(err)
	}
	plain, err := schemas.MarshalJSON(dt)
	if err != nil {
		f.Fatal(err)
	}
	for _, body := range [][]byte{nil, packed, plain, []byte(`{"token":"t"}`), {1, 0xdd, 0xff, 0xff, 0xff, 0xff}} {
		f.Add(body)
	}
	s := &session{}
	f.Fuzz(func(t *testing.T, body []byte) {
		a := &ask{typ: "order"}
		a.msg.Data, a.msg.Reply = body, "reply"
		o, err := s.begin(a)
		if err != nil {
			tokenOf(body)
			return
		}
		for i, e := range o.t.Events() {
			if e.ID != o.t.PreviousStartedID()+1+int64(i) || e.ID > o.t.StartedID() {
				t.Fatalf("event %d at place %d of the window (%d, %d]", e.ID, i, o.t.PreviousStartedID(), o.t.StartedID())
			}
		}
		limit(&o.t.task, a.arrived, o.began, 0)
	})
}

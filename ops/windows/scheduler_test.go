package windows_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/ops/schedules"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// verb asks the scheduler of the master; the test ends at a refusal.
func (h *house) verb(verb string, q any) *ops.ScheduleResponse {
	h.t.Helper()
	body, err := schemas.MarshalJSON(q)
	if err != nil {
		h.t.Fatal(err)
	}
	m, err := natsconn.Of(h.Client).Request(h.t.Context(), ns.API(verb), natsconn.Header{schemas.ContentTypeHeader: {schemas.ContentTypeJSON}}, body)
	a := &ops.ScheduleResponse{}
	if err == nil {
		err = schemas.Unmarshal(m.Data, a)
	}
	if err != nil || a.Error != nil {
		h.t.Fatalf("%s: %v, %v", verb, err, a.Error)
	}
	return a
}

// S2-10: a schedule with a window that the master's scheduler keeps: nodes fire it once in each period until nothing is left of its limit, with
// the slot and the last result in its input. The scheduler learns how the runs ended. A schedule that was deleted fires no more, and one that
// is paused counts its windows as skipped.
func TestWindowOfTheScheduler(t *testing.T) {
	live(t, func(h *house) {
		s, err := schedules.New(schedules.Options{Conn: natsconn.Of(h.Client), Namespace: ns, Node: "master"})
		if err != nil {
			h.t.Fatal(err)
		}
		h.Go(s)
		h.node("a", nil)
		h.node("b", nil)
		time.Sleep(2 * time.Second)
		left := int64(3)
		hourly := func(id string) ops.Schedule {
			return ops.Schedule{
				ID: id, Remaining: &left,
				Window: &ops.ScheduleWindow{Period: "hour", Opens: ":10", Length: schemas.Duration(10 * time.Minute), Every: schemas.Duration(time.Minute)},
				Action: ops.ScheduleAction{Start: &schemas.StartRequest{Type: "echo", Input: schemas.Payload(`{"slot":"${slot}","last":"${last.result}"}`)}},
			}
		}
		for _, id := range []string{"hourly", "deleted", "paused"} {
			h.verb("scheduleCreate", &ops.ScheduleCreateRequest{V: schemas.Version, Schedule: hourly(id)})
		}
		h.verb("scheduleDelete", &ops.ScheduleRequest{V: schemas.Version, ID: "deleted"})
		h.verb("schedulePause", &ops.ScheduleRequest{V: schemas.Version, ID: "paused"})
		time.Sleep(150 * time.Minute)
		a := h.verb("scheduleShow", &ops.ScheduleRequest{V: schemas.Version, ID: "hourly"})
		c := a.State.Counts
		if c.Started != 3 || c.Done != 3 || c.Missed != 0 || len(a.State.Running) != 0 || a.State.Remaining == nil || *a.State.Remaining != 0 {
			h.t.Errorf("the state is %+v", a.State)
		}
		const last = `{"last":{"last":{"last":null,"slot":"2000-01-01T00:10:00Z"},"slot":"2000-01-01T01:10:00Z"},"slot":"2000-01-01T02:10:00Z"}`
		if string(a.State.LastResult) != last {
			h.t.Errorf("the last result is %s, want %s", a.State.LastResult, last)
		}
		if n := len(h.runs()); n != 3 {
			h.t.Errorf("%d runs, want 3", n)
		}
		if c := h.verb("scheduleShow", &ops.ScheduleRequest{V: schemas.Version, ID: "paused"}).State.Counts; c.Skipped != 3 || c.Started+c.Missed != 0 {
			h.t.Errorf("the paused one has counted %+v", c)
		}
		time.Sleep(time.Hour)
		if n := len(h.runs()); n != 3 {
			h.t.Errorf("%d runs, though the limit was 3", n)
		}
	})
}

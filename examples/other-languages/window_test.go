package otherlanguages_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// Beside a large context no event may fit into a task; then all of the window is read by the API.
func TestWindowWithoutEvents(t *testing.T) {
	for _, l := range languages(t) {
		t.Run(l.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			e := drovertest.Start(t, nil)
			run, err := e.Client.Start(ctx, "order", order{[]string{"tea"}}, &drover.StartOptions{ID: "o"})
			if err != nil {
				t.Fatal(err)
			}
			l.worker(t, e.URL(), "decider")
			await(t, run, schemas.EventActivityScheduled)
			nc, err := nats.Connect(e.URL())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			task, err := json.Marshal(map[string]any{
				"workflowId": "o", "run": run.RunID, "type": "order", "token": "t", "previousStartedId": 0, "startedId": 3, "events": []any{}, "more": true, "attempt": 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			m, err := nc.RequestWithContext(ctx, "drover.default.decide.order", task)
			if err != nil {
				t.Fatal(err)
			}
			var reply struct {
				Decisions []struct{ Type string }
				Error     any
			}
			if err := json.Unmarshal(m.Data, &reply); err != nil || len(reply.Decisions) != 1 || reply.Decisions[0].Type != "ScheduleActivity" {
				t.Fatalf("got %+v and %v, want the decision that the history leads to", reply, err)
			}
		})
	}
}

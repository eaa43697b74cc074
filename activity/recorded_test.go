package activity_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// A stream that somebody keeps of what is asked acknowledges each request before it is answered. Clients, deciders and workers go on as without it.
func TestRequestsAreRecorded(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		made, err := natsconn.Of(e.Client).Request(t.Context(), "$JS.API.STREAM.CREATE.recorder", nil, []byte(`{"name":"recorder","storage":"memory","subjects":[
			"drover.default.api.*","drover.default.decide.>","drover.default.beat.>","drover.default.outcome.>","drover.default.owner.*","drover.default.control.*","drover.default.offer.*","drover-server.>"]}`))
		if err != nil || strings.Contains(string(made.Data), `"error"`) {
			t.Fatalf("got %s (%v)", made.Data, err)
		}
		d := e.Client.Deciders(nil)
		d.Register("greet", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			v, err := task.View(ctx)
			if err != nil {
				return nil, err
			}
			switch status, result, _ := v.Activity("hello"); {
			case status == 0:
				return []schemas.Decision{decider.Schedule("hello", "hello", "x", decider.List("words"), decider.Heartbeat(time.Second))}, nil
			case status == decider.ActivitySucceeded:
				return []schemas.Decision{decider.Complete(result)}, nil
			}
			return nil, nil
		}))
		w := e.Client.Activities(&activity.Options{Lists: []string{"words"}})
		activity.Register(w, "hello", func(context.Context, string) (string, error) { return "hello", nil })
		e.Go(d, w)
		synctest.Wait() // they listen: who is asked before that is recorded, and not told that nobody does
		began := time.Now()
		run, err := e.Client.Start(t.Context(), "greet", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var greeting string
		if e.Result(run, &greeting); greeting != "hello" {
			t.Errorf("got %q, want hello", greeting)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("took %v, want it as without the stream", took)
		}
		if info, err := run.Describe(t.Context()); err != nil || info.Execution.WorkflowID != run.ID {
			t.Errorf("got %+v (%v), want the workflow %s", info, err, run.ID)
		}
		letters, err := e.Client.CountDeadLetters(t.Context(), drover.DeadOptions{})
		if err != nil || len(letters) > 0 {
			t.Errorf("got the dead letters %+v (%v), want none", letters, err)
		}
	})
}

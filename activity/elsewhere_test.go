package activity_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/nearby"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

// errand is a task with a decider behind it.
type errand struct{ decide nearby.Decide }

func (e errand) Open() (*schemas.ActivityTask, nearby.Decide, error) { return task(), e.decide, nil }

// A decider that is late by far, or by nothing, or ends its goroutine, keeps nobody waiting: the outcome is told without it, and the slot of its
// task is free for the next, once.
func TestOutcomeIsToldElsewhere(t *testing.T) {
	for name, decide := range map[string]nearby.Decide{
		"late": func(_ *schemas.Report, elsewhere func()) (*schemas.AheadDecision, bool) {
			go elsewhere()
			time.Sleep(10 * time.Second)
			return nil, true
		},
		"late by nothing": func(_ *schemas.Report, elsewhere func()) (*schemas.AheadDecision, bool) {
			go elsewhere()
			return nil, true
		},
		"ends its goroutine": func(_ *schemas.Report, elsewhere func()) (*schemas.AheadDecision, bool) {
			go elsewhere()
			runtime.Goexit()
			return nil, false
		},
		"in time, without a decision": func(*schemas.Report, func()) (*schemas.AheadDecision, bool) { return nil, false },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				conn := r.dial()
				w := r.workerOn(conn, func(o *activity.Options) { o.Concurrency = 1 })
				activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
				r.start(w)
				time.Sleep(time.Second)
				for range 3 {
					if !nearby.On(conn).Take(nearby.List{Namespace: string(ns), Name: "PCI"}, "work", post.Msg{}, errand{decide: decide}) {
						t.Fatal("the task is not taken")
					}
					if got := r.next(schemas.ReportSuccess); got.Token != "RUN.5.1" || got.Ahead != nil {
						t.Fatalf("got %+v, want the outcome alone", got)
					}
					time.Sleep(time.Second)
				}
				r.quiet(time.Minute)
			})
		})
	}
}

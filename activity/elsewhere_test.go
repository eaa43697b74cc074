package activity_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nearby"
	"github.com/droverhq/drover/schemas"
)

// errand is a task with a decider after it.
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
					if !nearby.On(conn).Take(nearby.List{Namespace: string(ns), Name: "PCI"}, "work", natsconn.Msg{}, errand{decide: decide}) {
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

// handed is an owner that takes outcomes, or none, and keeps them.
func (r *rig) handed(takes bool) <-chan schemas.Report {
	r.t.Helper()
	if takes {
		return r.answering(`{"v":1,"sequence":1}`)
	}
	return r.answering(`{"error":{"code":409}}`)
}

// An outcome that its owner has stored comes to no inbox, and with it goes the decision after it. One that comes to the inbox is alone: its owner
// asks.
func TestOutcomeIsHandedOver(t *testing.T) {
	for _, tc := range []struct {
		name      string
		takes     bool // the owner
		after     time.Duration
		size      int
		undecided bool // nobody is asked for a decision
	}{
		{"the owner takes it", true, 0, 10, false},
		{"the owner does not", false, 0, 10, false},
		{"its start is known", true, time.Second, 10, true},
		{"it is large", true, 0, 200 << 10, true},
		{"it is more than an owner takes", true, 0, schemas.PayloadThreshold, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				outcomes := r.handed(tc.takes)
				conn := r.dial()
				w := r.workerOn(conn)
				activity.Register(w, "work", ignoreIn(func(context.Context) ([]byte, error) { time.Sleep(tc.after); return make([]byte, tc.size), nil }))
				r.start(w)
				time.Sleep(time.Second)
				asked := 0
				decide := func(*schemas.Report, func()) (*schemas.AheadDecision, bool) {
					asked++
					return &schemas.AheadDecision{Token: "decided"}, false
				}
				take := func(activityType string) bool {
					return nearby.On(conn).Take(nearby.List{Namespace: string(ns), Name: "PCI"}, activityType, natsconn.Msg{}, errand{decide: decide})
				}
				if take("unknown") {
					t.Error("a task is taken that is not done here")
				}
				times := 1
				if tc.size > natsconn.BulkBytes { // they wait for their turn, which those before have given back
					times = 3
				}
				for range times {
					if !take("work") {
						t.Fatal("the task is not taken")
					}
					if tc.after > 0 {
						r.next(schemas.ReportStarted)
					}
					handed := tc.size < schemas.PayloadThreshold
					if handed {
						got := <-outcomes
						if got.Token != "RUN.5.1" || len(got.Result) != tc.size || (got.Ahead == nil) != tc.undecided || (asked == 0) != tc.undecided {
							t.Errorf("the owner is handed token %s, %d bytes and decision %+v, asked for %d times", got.Token, len(got.Result), got.Ahead, asked)
						}
					}
					if !tc.takes || !handed {
						if got := r.next(schemas.ReportSuccess); got.Ahead != nil || len(got.Result) != tc.size {
							t.Errorf("the inbox has %d bytes and decision %+v, want the outcome alone", len(got.Result), got.Ahead)
						}
					}
					r.quiet(time.Second)
				}
			})
		})
	}
}

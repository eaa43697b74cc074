package broker_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// A worker that dies, or stands still for longer than its lease, leads to ActivityInterrupted and, by the activity's
// idempotent flag, to another attempt or to the failure `interrupted`. The outcome of the one that stood still is refused,
// kept and counted.
func TestS3_05WorkerIsLost(t *testing.T) { // S3-5, S3-13, I6
	again := []string{
		"WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ActivityScheduled", "ActivityStarted",
		"ActivityInterrupted", "ActivityStarted", "ActivitySuccess", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess",
	}
	failed := slices.Concat(again[:7], []string{"ActivityFailed"}, again[9:])
	for _, tt := range []struct {
		name, more string
		freezes    bool
		want       []string
		runs       int64
		dead       map[string]int64
	}{
		{"S3-05 it dies, and the activity may be repeated", "", false, again, 2, map[string]int64{}},
		{"S3-05 it dies, and the activity must not run twice", `,"notIdempotent":true`, false, failed, 1, map[string]int64{}},
		{"S3-05 it stands still, and the activity may be repeated", "", true, again, 2, map[string]int64{"closed-activity": 1}},
		{"S3-05 it stands still, and the activity must not run twice", `,"notIdempotent":true`, true, failed, 1, map[string]int64{"closed-activity": 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				r := &reference{fleet: f}
				r.ctx, r.end = context.WithCancel(context.Background())
				defer r.stop()
				f.node("a", nil)
				f.decider("order", one(tt.more))
				var runs atomic.Int64
				var frozen atomic.Bool
				worker := func(name string, takes time.Duration, judge func(string, []byte) cutwire.Verdict) {
					r.ending.Go(func() {
						r.process(name, judge, func(ctx context.Context, c *drover.Client) {
							w := c.Activities(&activity.Options{Lists: []string{"main"}, Identity: name, DrainTimeout: time.Second})
							activity.Register(w, "work", func(context.Context, struct{}) (string, error) {
								runs.Add(1)
								time.Sleep(takes)
								return name, nil
							})
							_ = w.Run(ctx)
						})
					})
				}
				f.start(startO)
				// It is lost five seconds into the activity. Standing still is to send nothing for 30 s.
				var begun atomic.Int64
				worker("first", time.Minute, func(subj string, _ []byte) cutwire.Verdict {
					if strings.HasPrefix(subj, "drover.default.in.") || strings.HasPrefix(subj, "drover.default.outcome.") { // its start, or the question about it
						begun.CompareAndSwap(0, time.Now().UnixNano())
					}
					if at := begun.Load(); at == 0 || time.Since(time.Unix(0, at)) < 5*time.Second {
						return cutwire.Pass
					}
					switch {
					case !tt.freezes:
						return cutwire.CutBefore
					case time.Since(time.Unix(0, begun.Load())) < 50*time.Second:
						frozen.Store(true)
						return cutwire.Swallow
					}
					return cutwire.Pass
				})
				f.await("o", schemas.EventActivityStarted)
				worker("second", time.Second, nil)
				f.completes("o")
				time.Sleep(2 * time.Minute)
				f.wantTypes("o", tt.want...)
				if runs.Load() != tt.runs || frozen.Load() != tt.freezes {
					t.Fatalf("it ran %d times, want %d; a worker stood still: %v", runs.Load(), tt.runs, frozen.Load())
				}
				counts := f.counts()
				for reason, n := range tt.dead {
					if counts[reason] != n {
						t.Fatalf("counted %v, want %v", counts, tt.dead)
					}
				}
				for _, e := range f.events("o") {
					if a, ok := e.Attributes.(*schemas.ActivityFailed); ok && a.Reason != schemas.ReasonInterrupted {
						t.Fatalf("it failed for the reason %q, want %q", a.Reason, schemas.ReasonInterrupted)
					}
				}
			})
		})
	}
}

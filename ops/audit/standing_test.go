package audit_test

import (
	"context"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/ops/audit"
	"github.com/droverhq/drover/schemas"
)

// A full pass counts the paused runs, and what passes have found is told for as long as it is so.
func TestStanding(t *testing.T) {
	virtually(t, 1, func(t *testing.T, h *house) {
		h.all()
		h.start("a", "order")
		h.start("b", "order")
		h.start("c", "refund")
		h.api("pause", `{"workflowId":"c"}`)
		type told struct {
			*audit.Report
			standing map[audit.Standing]int
		}
		var seen atomic.Pointer[told]
		var a *audit.Auditor
		a = h.auditor(func(o *audit.Options) {
			o.Observer = func(r *audit.Report) { seen.Store(&told{r, a.Standing()}) }
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		time.Sleep(90 * time.Second)
		last := seen.Load()
		if !maps.Equal(last.Paused, map[schemas.Cause]int{schemas.CauseOperatorInitiated: 1}) {
			t.Errorf("got %v paused", last.Paused)
		}
		unserved := audit.Standing{Kind: audit.KindNoDecider, Severity: audit.Notice}
		if last.standing[unserved] != 1 {
			t.Errorf("got %v, want one type that nobody decides", last.standing)
		}
		time.Sleep(2 * time.Minute)
		last = seen.Load()
		if last.Full || last.Paused != nil || last.standing[unserved] != 1 {
			t.Errorf("after a cheap pass: got %v paused, %v", last.Paused, last.standing)
		}
		h.decider("order", func(func(string) bool) string { return complete })
		h.completes("a")
		time.Sleep(11 * time.Minute)
		if last = seen.Load(); len(last.standing) != 0 {
			t.Errorf("when it is mended: got %v", last.standing)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

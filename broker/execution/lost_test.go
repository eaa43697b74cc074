package execution

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

// What the master asks about a task that no worker is left to take: an attempt that has begun is reverted if it may be
// repeated, and set to failed otherwise. Nothing else is touched.
func TestS3_05LostTask(t *testing.T) {
	delivery := func(r *schemas.Report) { r.Nonce, r.TaskSequence = "n1", 41 }
	for _, tt := range []struct {
		name          string
		notIdempotent bool
		begun         bool
		bare          bool // its start named no message
		ask           func(*schemas.Report)
		done          schemas.LostTask
		events        string
		dispatches    int
	}{
		{name: "begun", begun: true, done: schemas.LostReverted, events: "ActivityInterrupted A", dispatches: 1},
		{name: "begun, must not run twice", notIdempotent: true, begun: true, done: schemas.LostFailed, events: "ActivityInterrupted A; ActivityFailed A interrupted; DeciderScheduled"},
		{name: "not begun", done: schemas.LostStands},
		{name: "not begun, must not run twice", notIdempotent: true, done: schemas.LostStands},
		{name: "another copy has begun", begun: true, ask: func(r *schemas.Report) { r.TaskSequence = 42 }, done: schemas.LostGone},
		{name: "not delivered before", begun: true, ask: func(r *schemas.Report) { r.Redelivered = false }, done: schemas.LostGone},
		{name: "no sequence", begun: true, ask: func(r *schemas.Report) { r.TaskSequence = 0 }, done: schemas.LostGone},
		{name: "no sequence, of one that began without", begun: true, bare: true, ask: func(r *schemas.Report) { r.TaskSequence = 0 }, done: schemas.LostGone},
		{name: "an earlier attempt", ask: func(r *schemas.Report) { r.Token = "run-1.5.0" }, done: schemas.LostGone},
		{name: "another run", begun: true, ask: func(r *schemas.Report) { r.Token = "run-0.5.1" }, done: schemas.LostGone},
		{name: "no such activity", ask: func(r *schemas.Report) { r.Token = "run-1.4.1" }, done: schemas.LostGone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := activity("A")
			a.NotIdempotent = tt.notIdempotent
			w := decided(t, a)
			if tt.begun {
				w.report("A", schemas.ReportStarted, func(r *schemas.Report) {
					if !tt.bare {
						delivery(r)
					}
				})
			}
			w.since()
			effects := w.report("A", schemas.ReportLost, func(r *schemas.Report) {
				r.Nonce, r.TaskSequence, r.Redelivered, r.ReplyTo = "q", 41, true, "_INBOX.q"
				if tt.ask != nil {
					tt.ask(r)
				}
			})
			w.follows(tt.events)
			want := []Permit{{To: "_INBOX.q", Permission: schemas.Permission{Nonce: "q", Done: tt.done}}}
			if diff := cmp.Diff(want, of[Permit](effects)); diff != "" {
				t.Error(diff)
			}
			if got := len(of[Dispatch](effects)); got != tt.dispatches {
				t.Errorf("got %d tasks put on their list, want %d", got, tt.dispatches)
			}
			if tt.done == schemas.LostReverted {
				if a := w.activity("A"); a.Started != 0 || a.Attempt != 2 {
					t.Errorf("got attempt %d, started %d, want the second one, not begun", a.Attempt, a.Started)
				}
			}
		})
	}
	t.Run("the workflow is closed", func(t *testing.T) {
		w := decided(t, &schemas.CompleteWorkflow{})
		effects := w.do(Report{Report: &schemas.Report{Kind: schemas.ReportLost, Token: "run-1.5.1", Nonce: "q", ReplyTo: "_INBOX.q"}})
		if p := of[Permit](effects); len(p) != 1 || p[0].Permission.Done != schemas.LostGone || len(effects) != 1 {
			t.Errorf("got %v, want that it is gone", effects)
		}
	})
}

package drover_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// P-5: all tries of one replay have one request id; force asks another verb.
func TestReplayRequests(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{Name: "op:1"})
		var got []schemas.ReplayRequest
		for _, verb := range []string{"replay", "replayForce"} {
			on(s, verb, func(n int, req schemas.ReplayRequest) any {
				if got = append(got, req); n == 1 {
					return nil // the answer is lost
				}
				if req.WorkflowID == "open" {
					return schemas.ReplayResponse{Error: schemas.Errorf(schemas.CodeConflict, "it is open").WithHint("wait")}
				}
				a := schemas.ReplayResponse{WorkflowID: req.WorkflowID, Run: "new", Replays: "old", Started: true, Plan: &schemas.ReplayPlan{From: verb}}
				if req.DryRun {
					a.Run, a.Started = "", false
				}
				return a
			})
		}
		a, err := c.Run("a", "old").Replay(t.Context(), &drover.ReplayOptions{From: "pay", Reason: "mended", LatestOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if a.Run.ID != "a" || a.Run.RunID != "new" || !a.Run.Started() || a.Replays != "old" || a.Plan.From != "replay" {
			t.Errorf("got %+v", a)
		}
		if a, err = c.Run("a", "").Replay(t.Context(), &drover.ReplayOptions{Force: true, DryRun: true, RequestID: "q"}); err != nil {
			t.Fatal(err)
		}
		if a.Run != nil || a.Plan.From != "replayForce" {
			t.Errorf("dry run: got %+v", a)
		}
		if len(got) != 4 || got[0].RequestID == "" {
			t.Fatalf("asked %+v", got)
		}
		first := schemas.ReplayRequest{V: 1, WorkflowID: "a", Run: "old", From: "pay", LatestOnly: true, Reason: "mended", Identity: "op:1", RequestID: got[0].RequestID}
		second := schemas.ReplayRequest{V: 1, WorkflowID: "a", DryRun: true, Identity: "op:1", RequestID: "q"}
		if diff := cmp.Diff([]schemas.ReplayRequest{first, first, second, second}, got); diff != "" {
			t.Error(diff)
		}
		_, err = c.Run("open", "").Replay(t.Context(), nil)
		wantError(t, err, drover.ErrConflict)
		for _, o := range []drover.ReplayOptions{{From: strings.Repeat("x", 257)}, {From: "a\nb"}, {Reason: strings.Repeat("x", 1025)}, {RequestID: "a\x00"}} {
			_, err = c.Run("a", "").Replay(t.Context(), &o)
			wantError(t, err, drover.ErrInvalid)
		}
		_, err = c.Run("", "").Replay(t.Context(), nil)
		wantError(t, err, drover.ErrInvalid)
	})
}

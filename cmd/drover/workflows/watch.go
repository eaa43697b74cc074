package workflows

import (
	"context"
	"slices"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// watchEvery is how often --watch asks.
const watchEvery = time.Second

// watchList shows workflows, the last of a list first, and then each that begins to match or
// changes its status, until ctx ends.
func watchList(
	ctx context.Context, a *cli.App, c *drover.Client, s *search, most int,
) error {
	var known map[schemas.Execution]schemas.Status
	for {
		seen := map[schemas.Execution]schemas.Status{}
		var changed []ops.FoundRun
		for r, err := range s.find(ctx, c, s.top, most) {
			if err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			x := schemas.Execution{WorkflowID: r.WorkflowID, Run: r.Run}
			if seen[x] = r.Status; known[x] != r.Status {
				changed = append(changed, r)
			}
		}
		slices.Reverse(changed)
		for _, r := range changed {
			if err := sayChange(a, r); err != nil {
				return err
			}
		}
		known = seen
		if sleep.For(ctx, watchEvery) != nil {
			return nil
		}
	}
}

func sayChange(a *cli.App, r ops.FoundRun) error {
	if a.JSON {
		return a.Document(r)
	}
	at := r.StartedAt
	if r.ClosedAt != 0 {
		at = r.ClosedAt
	}
	return a.Say("%s  %-14s  %s  %s  %s", cli.When(at), r.Status,
		cli.Word(r.Type, cli.Whole), cli.Word(r.WorkflowID, cli.Whole), cli.Word(r.Run, cli.Whole))
}

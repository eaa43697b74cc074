package workflows

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/ops/audit"
)

func WhyCommand(a *cli.App) *cobra.Command {
	var runID string
	cmd := &cobra.Command{
		Use:   "why ID",
		Short: "Say in one sentence what a workflow waits for",
		Long: `Tell in one sentence what a workflow waits for, with the names and times that
matter. If nobody answers for it, the streams of the namespace tell which partition has no owner,
and who owned it last.`,
		Args: cli.ArgNames("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				because, err := whyOrUnserved(ctx, c, args[0], runID)
				if err != nil {
					return err
				}
				if a.JSON {
					return a.Document(struct {
						WorkflowID string `json:"workflowId"`
						Run        string `json:"run,omitempty"`
						Because    string `json:"because"`
					}{args[0], runID, because})
				}
				return a.Say("%s", cli.Sentence(because))
			})
		},
	}
	cli.RunFlag(cmd, &runID)
	return cmd
}

const (
	// whyPatience is how long the owner may take to answer before the streams are asked whether
	// there is one.
	whyPatience = 5 * time.Second
	// unservedTimeout bounds the look into the streams, which comes when the caller's patience may
	// be over.
	unservedTimeout = 5 * time.Second
)

// whyOrUnserved asks the owner of a workflow, or explains why there is none. It asks on as long as
// any command does if neither helps.
func whyOrUnserved(ctx context.Context, c *drover.Client, id, runID string) (string, error) {
	run := c.Run(id, runID)
	first, cancel := context.WithTimeout(ctx, whyPatience)
	defer cancel()
	because, err := run.Why(first)
	if err == nil {
		return because, nil
	}
	if because = unserved(ctx, c, id, err); because != "" {
		return because, nil
	}
	if first.Err() == nil || ctx.Err() != nil {
		return "", err
	}
	return run.Why(ctx)
}

// unserved explains why nobody answered for a workflow; it returns "" if the failure was another,
// or is not explained.
func unserved(ctx context.Context, c *drover.Client, id string, failure error) string {
	if !errors.Is(failure, drover.ErrUnavailable) && !errors.Is(failure, drover.ErrTimeout) {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unservedTimeout)
	defer cancel()
	partitions, err := cli.PartitionsOf(ctx, c, "why")
	if err != nil {
		return ""
	}
	because, err := audit.Unserved(ctx, natsconn.Of(c), subject.Namespace(c.Namespace()),
		partitions, id)
	if err != nil {
		return ""
	}
	return because
}

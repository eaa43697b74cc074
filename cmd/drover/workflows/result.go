package workflows

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/rootcause"
	"github.com/droverhq/drover/schemas"
)

func ResultCommand(a *cli.App) *cobra.Command {
	var runID string
	cmd := &cobra.Command{
		Use:   "result ID",
		Short: "Wait for the end of a workflow and print its result",
		Long: `Wait for the end of a workflow and print its result.

A run that continued as new is followed. The exit code is 1 if the workflow did not complete, and
4 if it had not ended when --timeout was over. After two seconds a line on stderr says what the
workflow waits for, unless documents are wanted. Ctrl-C ends the wait alone, with exit code 130;
the workflow goes on.`,
		Args: cli.ArgNames("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				return awaitOutcome(ctx, a, c, c.Run(args[0], runID), time.Now())
			})
		},
	}
	cli.RunFlag(cmd, &runID)
	return cmd
}

// SoftNote tells of a run that is kept softly.
const SoftNote = "the run is purged from disk; this is what the master of the namespace remembers (soft)"

// OutcomeDocument is what start --wait and result print with --json, also of a run that failed.
type OutcomeDocument struct {
	WorkflowID string          `json:"workflowId"`
	Run        string          `json:"run"`
	Status     schemas.Status  `json:"status"`
	Result     schemas.Payload `json:"result,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Details    schemas.Payload `json:"details,omitempty"`
	Soft       bool            `json:"soft,omitempty"`
}

// ShowOutcome waits for the end of a run and prints how it ended.
func ShowOutcome(
	ctx context.Context, a *cli.App, c *drover.Client, run *drover.Run, began time.Time,
) error {
	o, err := waitFor(ctx, a, c, run)
	if err != nil {
		return err
	}
	if a.JSON {
		if err := a.Document(OutcomeDocument{
			o.ID, o.Run, o.Status, o.Result, o.Reason, o.Details, o.Soft,
		}); err != nil {
			return err
		}
		return o.Err()
	}
	if o.Soft {
		fmt.Fprintln(a.Stderr, SoftNote)
	}
	if o.Err() != nil {
		if len(o.Details) > 0 {
			if _, lines := textLines(string(o.Details), cli.Sentence); len(lines) > 0 {
				fmt.Fprintf(a.Stderr, "details:\n%s", indented(lines))
			} else {
				fmt.Fprintf(a.Stderr, "details: %s\n", cli.Sentence(string(o.Details)))
			}
		}
		if cause := rootcause.Of(o.Details); cause != "" {
			fmt.Fprintf(a.Stderr, "cause: %s\n", cause)
		}
		return o.Err()
	}
	if len(o.Result) == 0 {
		fmt.Fprintf(a.Stderr, "completed without a result, waited %s\n",
			cli.Span(time.Since(began)))
		return nil
	}
	_, err = a.Stdout.Write(append(o.Result[:len(o.Result):len(o.Result)], '\n'))
	return err
}

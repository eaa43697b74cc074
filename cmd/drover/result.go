package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/rootcause"
	"github.com/droverhq/drover/schemas"
)

func resultCommand(a *app) *cobra.Command {
	var runID string
	cmd := &cobra.Command{
		Use:   "result ID",
		Short: "Wait for the end of a workflow and print its result",
		Long: `Wait for the end of a workflow and print its result.

A run that continued as new is followed. The exit code is 1 if the workflow did not complete, and 4 if it had not ended
when --timeout was over. After two seconds a line on stderr says what the workflow waits for, unless documents are wanted.
Ctrl-C ends the wait alone, with exit code 130; the workflow goes on.`,
		Args: argNames("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				return a.await(ctx, c, c.Run(args[0], runID), time.Now())
			})
		},
	}
	runFlag(cmd, &runID)
	return cmd
}

// runFlag adds --run.
func runFlag(cmd *cobra.Command, runID *string) {
	cmd.Flags().StringVar(runID, "run", "", "the run id (default the open run, or else the latest)")
}

// softNote tells of a run that is kept softly.
const softNote = "the run is purged from disk; this is what the master of the namespace remembers (soft)"

// outcomeDocument is what start --wait and result print with --json, also of a run that failed.
type outcomeDocument struct {
	WorkflowID string          `json:"workflowId"`
	Run        string          `json:"run"`
	Status     schemas.Status  `json:"status"`
	Result     schemas.Payload `json:"result,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Details    schemas.Payload `json:"details,omitempty"`
	Soft       bool            `json:"soft,omitempty"`
}

func (a *app) outcome(ctx context.Context, c *drover.Client, run *drover.Run, began time.Time) error {
	o, err := a.wait(ctx, c, run)
	if err != nil {
		return err
	}
	if a.json {
		if err := a.document(outcomeDocument{o.ID, o.Run, o.Status, o.Result, o.Reason, o.Details, o.Soft}); err != nil {
			return err
		}
		return o.Err()
	}
	if o.Soft {
		fmt.Fprintln(a.stderr, softNote)
	}
	if o.Err() != nil {
		if len(o.Details) > 0 {
			if _, lines := textLines(string(o.Details), sentence); len(lines) > 0 {
				fmt.Fprintf(a.stderr, "details:\n%s", indented(lines))
			} else {
				fmt.Fprintf(a.stderr, "details: %s\n", sentence(string(o.Details)))
			}
		}
		if cause := rootcause.Of(o.Details); cause != "" {
			fmt.Fprintf(a.stderr, "cause: %s\n", cause)
		}
		return o.Err()
	}
	if len(o.Result) == 0 {
		fmt.Fprintf(a.stderr, "completed without a result, waited %s\n", span(time.Since(began)))
		return nil
	}
	_, err = a.stdout.Write(append(o.Result[:len(o.Result):len(o.Result)], '\n'))
	return err
}

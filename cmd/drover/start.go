package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

type startFlags struct {
	options                     drover.StartOptions
	input                       inputFlag
	wait                        bool
	workflow, decider, activity durationFlag
	list                        string
	childPolicy                 string
}

func startCommand(a *app) *cobra.Command {
	var f startFlags
	cmd := &cobra.Command{
		Use:   "start TYPE",
		Short: "Start a workflow",
		Long: `Start a workflow of TYPE.

Prints the workflow id and the run id. With --wait it waits for the end and prints the result instead; the exit code is
then 1 if the workflow did not complete.`,
		Example: `  drover start order --id order-17 --input '{"amount": 12}'
  drover start order --input @order.json --wait --timeout 1m`,
		Args: argNames("TYPE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			input, err := f.input.read(cmd, a.stdin)
			if err != nil {
				return err
			}
			opts, err := f.startOptions(cmd)
			if err != nil {
				return err
			}
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				return a.start(ctx, c, args[0], input, opts, f.wait)
			})
		},
	}
	f.register(cmd)
	return cmd
}

func (f *startFlags) register(cmd *cobra.Command) {
	for _, d := range []*durationFlag{&f.workflow, &f.decider, &f.activity} {
		d.unlimited = true
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.options.ID, "id", "", "the workflow id (default a new ULID)")
	f.input.register(cmd, "the workflow's input")
	fs.BoolVar(&f.wait, "wait", false, "wait for the end and print the result")
	fs.StringVar(&f.options.RequestID, "request-id", "", "a repeat with the same request id returns the first run (default a new one)")
	fs.StringVar(&f.options.TypeVersion, "type-version", "", "version of the type, for the decider")
	fs.Var(&f.workflow, "timeout-workflow", "limit of the whole run, or NONE (default one year)")
	fs.Var(&f.decider, "timeout-decider", "limit of one decision, or NONE (default 10s)")
	fs.Var(&f.activity, "timeout-activity", "limit of an activity from start to close where its decision says nothing (default 10m)")
	fs.StringVar(&f.list, "list", "", "task list of activities whose decision names none")
	fs.IntVar(&f.options.Priority, "priority", 0, "priority that is written into the history with each decision task; it changes no order")
	fs.StringVar(&f.childPolicy, "child-policy", "", "what becomes of children: terminate, cancel or abandon")
	fs.StringArrayVar(&f.options.Tags, "tag", nil, "a tag to show in lists; may be repeated")
	fs.StringToStringVar(&f.options.Attributes, "attribute", nil, "a NAME=VALUE to show in lists; may be repeated")
	fs.Lookup("attribute").DefValue = ""
}

func (f *startFlags) startOptions(cmd *cobra.Command) (*drover.StartOptions, error) {
	o := f.options
	if cmd.Flags().Changed("id") && o.ID == "" {
		return nil, usage(cmd, fmt.Errorf("--id is empty: name an id, or leave the flag out for a new one"))
	}
	o.Timeout, o.DecisionTimeout = f.workflow.value, f.decider.value
	if f.list != "" || f.activity.value != 0 {
		o.ActivityDefaults = &schemas.ActivityDefaults{List: f.list, StartToCloseTimeout: schemas.Duration(f.activity.value)}
	}
	switch f.childPolicy {
	case "":
	case "terminate":
		o.ChildPolicy = schemas.ChildTerminate
	case "cancel":
		o.ChildPolicy = schemas.ChildRequestCancel
	case "abandon":
		o.ChildPolicy = schemas.ChildAbandon
	default:
		return nil, usage(cmd, fmt.Errorf("--child-policy is %q: use terminate, cancel or abandon", f.childPolicy))
	}
	return &o, nil
}

func (a *app) start(ctx context.Context, c *drover.Client, typ string, input schemas.Payload, o *drover.StartOptions, wait bool) error {
	began := time.Now()
	run, err := c.Start(ctx, typ, input, o)
	if err != nil {
		return err
	}
	if wait {
		if !a.json {
			fmt.Fprintf(a.stderr, "started %s run %s\n", word(run.ID, 256), run.RunID)
		}
		return a.outcome(ctx, run, began)
	}
	if a.json {
		return a.document(struct {
			WorkflowID string `json:"workflowId"`
			Run        string `json:"run"`
		}{run.ID, run.RunID})
	}
	return a.say("started %s run %s", word(run.ID, 256), run.RunID)
}

package workflows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/decider/flow/store"
	"github.com/droverhq/drover/schemas"
)

type startFlags struct {
	options                     drover.StartOptions
	input                       cli.InputFlag
	wait, flow                  bool
	workflow, decider, activity cli.DurationFlag
	after                       cli.DurationFlag
	events                      int64
	list                        string
	childPolicy                 string
	reuse, conflict             string
	signal                      string
	signalInput                 cli.InputFlag
}

// The words of --reuse-policy and --conflict-policy.
var (
	reusePolicies = map[string]schemas.IDReusePolicy{
		"": "", "allow": schemas.ReuseAllow, "failed-only": schemas.ReuseAllowFailed,
		"reject": schemas.ReuseReject,
	}
	conflictPolicies = map[string]schemas.IDConflictPolicy{
		"": "", "fail": schemas.ConflictFail, "use-existing": schemas.ConflictUseExisting,
		"terminate-existing": schemas.ConflictTerminateExisting,
	}
)

func StartCommand(a *cli.App) *cobra.Command {
	var f startFlags
	cmd := &cobra.Command{
		Use:   "start TYPE",
		Short: "Start a workflow",
		Long: `Start a workflow of TYPE.

Prints the workflow id and the run id. With --wait it waits for the end and prints the result
instead; the exit code is then 1 if the workflow did not complete. After two seconds a line on
stderr says what it waits for, unless documents are wanted. Ctrl-C ends the wait alone, with exit
code 130; the workflow goes on, and "drover result ID" waits again.

A start of an id that has an open run is refused, unless --conflict-policy says otherwise. With
--signal the open run gets the signal, and only if there is none a run is started and gets it
first.

A type that nobody decides for can be started: the run waits until somebody does. With --flow a
start of what is no deployed flow, or no version of it, is refused instead, and the run gets the
version that is current now.`,
		Example: `  drover start order --id order-17 --input '{"amount": 12}'
  drover start order --input @order.json --wait --timeout 1m
  drover start order --flow --type-version 3f9a --input '{"amount": 12}'
  drover start cart --id cart-9 --signal add --signal-input '{"item": 4711}'`,
		Args: cli.ArgNames("TYPE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := f.startOptions(cmd)
			if err != nil {
				return err
			}
			if err := f.checkSignal(cmd); err != nil {
				return err
			}
			input, err := f.input.Read(cmd, a.Stdin)
			if err != nil {
				return err
			}
			signal, err := f.signalInput.Read(cmd, a.Stdin)
			if err != nil {
				return err
			}
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				return startRun(ctx, a, c, args[0], input, signal, opts, &f)
			})
		},
	}
	f.register(cmd)
	return cmd
}

func (f *startFlags) register(cmd *cobra.Command) {
	for _, d := range []*cli.DurationFlag{&f.workflow, &f.decider, &f.activity} {
		d.Unlimited = true
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.options.ID, "id", "",
		"the workflow id (default one made of the request id, or else a new ULID)")
	f.input.Register(cmd, "the workflow's input")
	fs.StringVar(&f.signal, "signal", "",
		"name of a signal for the open run, or else for the one that is started; needs --id")
	f.signalInput.Name = cli.SignalInput
	f.signalInput.RegisterJSON(cmd, "the signal's input")
	fs.StringVar(&f.reuse, "reuse-policy", "",
		"whether the id of a closed run may be used again: allow, failed-only or reject (default allow)")
	fs.StringVar(&f.conflict, "conflict-policy", "",
		"if a run of the id is open: fail, use-existing or terminate-existing (default fail; "+
			"use-existing with --signal)")
	fs.BoolVar(&f.wait, "wait", false, "wait for the end and print the result")
	fs.StringVar(&f.options.RequestID, "request-id", "",
		"a repeat with the same request id returns the first run (default a new one)")
	fs.StringVar(&f.options.TypeVersion, "type-version", "",
		"version of the type, for the decider; of a flow its first four digits or more")
	fs.BoolVar(&f.flow, "flow", false,
		"TYPE has to be a deployed flow: if there is none the start is refused")
	fs.Var(&f.workflow, "timeout-workflow", "limit of the whole run, or NONE (default one year)")
	fs.Var(&f.decider, "timeout-decider", "limit of one decision, or NONE (default 10s)")
	fs.Var(&f.activity, "timeout-activity",
		"limit of an activity from start to close where its decision says nothing (default 10m)")
	fs.Var(&f.after, "continue-after",
		"ask it to continue as new when it is so old and nothing of it is open (default never)")
	fs.Int64Var(&f.events, "continue-events", 0,
		"ask it to continue as new when it has so many events and nothing of it is open (default never)")
	fs.StringVar(&f.list, "list", "", "task list of activities whose decision names none")
	fs.IntVar(&f.options.Priority, "priority", 0,
		"priority that is written into the history with each decision task; it changes no order")
	fs.StringVar(&f.childPolicy, "child-policy", "",
		"what becomes of children: terminate, cancel or abandon")
	fs.StringArrayVar(&f.options.Tags, "tag", nil, "a tag to show in lists; may be repeated")
	fs.Var(cli.AttributesFlag{To: &f.options.Attributes}, "attribute",
		"what to show in lists; all after the first = is the value; may be repeated")
}

func (f *startFlags) startOptions(cmd *cobra.Command) (*drover.StartOptions, error) {
	o := f.options
	o.Timeout, o.DecisionTimeout = f.workflow.Value, f.decider.Value
	if f.list != "" || f.activity.Value != 0 {
		o.ActivityDefaults = &schemas.ActivityDefaults{
			List: f.list, StartToCloseTimeout: schemas.Duration(f.activity.Value),
		}
	}
	if f.after.Value != 0 || f.events != 0 {
		o.Continuation = &schemas.ContinuationPolicy{
			After: schemas.Duration(f.after.Value), Events: f.events,
		}
		if err := o.Continuation.Validate("--continue"); err != nil {
			return nil, cli.Usage(cmd, errors.New(continueFlags.Replace(err.Error())))
		}
	}
	var err error
	if o.ChildPolicy, err = cli.ParseChildPolicy(cmd, f.childPolicy); err != nil {
		return nil, err
	}
	var ok bool
	if o.ReusePolicy, ok = reusePolicies[f.reuse]; !ok {
		return nil, cli.Usage(cmd,
			fmt.Errorf("--reuse-policy is %q: use allow, failed-only or reject", f.reuse))
	}
	if o.ConflictPolicy, ok = conflictPolicies[f.conflict]; !ok {
		return nil, cli.Usage(cmd, fmt.Errorf(
			"--conflict-policy is %q: use fail, use-existing or terminate-existing", f.conflict))
	}
	return &o, nil
}

// continueFlags are the flags for the fields of a continuation policy.
var continueFlags = strings.NewReplacer("--continue.after", "--continue-after", "--continue.events",
	"--continue-events")

// policyFlags are the flags after the fields that the hint of a refused start names. Other hints
// than those about the id and the policies may hold words of the caller, such as the name of a
// type.
var policyFlags = strings.NewReplacer("idConflictPolicy", "--conflict-policy",
	"idReusePolicy ALLOW", "--reuse-policy allow")

// checkSignal judges the flags of a signal with start.
func (f *startFlags) checkSignal(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case !changed("signal") && changed(cli.SignalInput):
		return cli.Usage(cmd, fmt.Errorf("--signal-input is given, which needs --signal NAME"))
	case !changed("signal"):
		return nil
	case f.options.ID == "":
		return cli.Usage(cmd, fmt.Errorf("--signal needs --id: say which workflow is signaled"))
	case conflictPolicies[f.conflict] == schemas.ConflictFail:
		return cli.Usage(cmd, fmt.Errorf(
			"--conflict-policy is fail, but --signal goes to the open run: leave it out, or "+
				"use terminate-existing to begin anew"))
	case f.input.Text == "-" && f.signalInput.Text == "-":
		return cli.Usage(cmd, fmt.Errorf(
			"--input and --signal-input both read standard input: use @FILE for one of them"))
	}
	return nil
}

func startRun(
	ctx context.Context, a *cli.App, c *drover.Client, typ string, input, signal schemas.Payload,
	o *drover.StartOptions, f *startFlags,
) error {
	began := time.Now()
	if f.flow {
		if err := deployedFlow(ctx, c, typ, o); err != nil {
			return err
		}
	}
	var run *drover.Run
	var err error
	if f.signal != "" {
		run, err = c.SignalWithStart(ctx, typ, input, f.signal, signal, o)
	} else {
		run, err = c.Start(ctx, typ, input, o)
	}
	if err != nil {
		e, ok := errors.AsType[*drover.Error](err)
		refusal, said := errors.AsType[*schemas.Error](err)
		if ok && said && slices.Contains(
			[]string{"workflowId", "idReusePolicy", "idConflictPolicy"}, refusal.Field) {
			e.Hint = policyFlags.Replace(e.Hint)
		}
		return err
	}
	if f.wait {
		if !a.JSON {
			fmt.Fprintln(a.Stderr, f.done(run))
		}
		return awaitOutcome(ctx, a, c, run, began)
	}
	if !a.JSON {
		return a.Say("%s", f.done(run))
	}
	doc := struct {
		WorkflowID string `json:"workflowId"`
		Run        string `json:"run"`
		Started    *bool  `json:"started,omitempty"`
	}{run.ID, run.RunID, nil}
	if f.mayFind() {
		doc.Started = new(run.Started())
	}
	return a.Document(doc)
}

// mayFind tells whether the run may be one that was open before.
func (f *startFlags) mayFind() bool {
	return f.signal != "" || conflictPolicies[f.conflict] == schemas.ConflictUseExisting
}

// done says in a line what has become of a start.
func (f *startFlags) done(run *drover.Run) string {
	s := "started"
	if f.mayFind() && !run.Started() {
		s = "found"
	}
	s = fmt.Sprintf("%s %s run %s", s, cli.Word(run.ID, 256), run.RunID)
	if f.signal != "" {
		s += ", signaled it with " + cli.Word(f.signal, 256)
	}
	return s
}

// deployedFlow refuses a start of a flow that is not deployed, and fixes its version. It needs the
// right to read the bucket of flows.
func deployedFlow(
	ctx context.Context, c *drover.Client, name string, o *drover.StartOptions,
) error {
	_, version, err := cli.FlowStore(c).Get(ctx, store.Flow, name, o.TypeVersion)
	if err != nil {
		return cli.FlowError("start "+cli.Word(name, 100), err)
	}
	o.TypeVersion = version
	return nil
}

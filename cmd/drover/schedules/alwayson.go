package schedules

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

func AlwaysOnCommand(a *cli.App) *cobra.Command {
	cmd := cli.GroupCommand(a, "always-on", "Keep workflows running all the time",
		`Keep workflows running all the time. Exactly one run of the id is open; when it
ends, the next one is begun within a second, and after failures later and
later, up to 5 minutes. A running server with the role ops does it.
docs/guides/schedules.md is the guide.`)
	cmd.AddCommand(
		alwaysAdd(a), alwaysList(a), alwaysShow(a), alwaysStop(a), alwaysStart(a), alwaysRemove(a),
	)
	return cmd
}

// alwaysFlags are what always-on add takes.
type alwaysFlags struct {
	restart         string
	input           cli.InputFlag
	after, workflow cli.DurationFlag
	events          int64
	start           schemas.StartRequest
}

func alwaysAdd(a *cli.App) *cobra.Command {
	var f alwaysFlags
	cmd := &cobra.Command{
		Use:   "add ID --type TYPE",
		Short: "Keep a workflow running all the time",
		Long: `Have a workflow run all the time. ID is its workflow id. If it is there already,
what the flags say takes effect with the next run.

A run is asked to continue as new when it has handled something and is older
than --continue-after, or has more than --continue-events events: its history
begins anew, with its state.`,
		Example: `  drover always-on add poller --type poll --input '{"every": "1m"}'
  drover always-on add import --type import --continue-after 30m`,
		Args: cli.Filled("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := f.alwaysOn(cmd, a, args[0])
			if err != nil {
				return err
			}
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				r, err := c.AddAlwaysOn(ctx, *w)
				if err != nil {
					return refusedAlways(err)
				}
				if r.V = 0; a.JSON {
					return a.Document(r)
				}
				if !r.Changed {
					return a.Say("always-on workflow %s was there before", cli.Word(args[0], 256))
				}
				return a.Say("added always-on workflow %s", cli.Word(args[0], 256))
			})
		},
	}
	f.register(cmd)
	return cmd
}

func (f *alwaysFlags) register(cmd *cobra.Command) {
	f.workflow.Unlimited = true
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.start.Type, "type", "", "its type (required)")
	fs.StringVar(&f.start.TypeVersion, "type-version", "", "version of the type")
	f.input.Register(cmd, "its input")
	fs.StringVar(
		&f.restart, "restart", "",
		"after which ends it begins again: always, or on-failure (default always)",
	)
	fs.Var(
		&f.after, "continue-after",
		"ask it to continue as new when it is so old; 0 for no such limit (default 1h)",
	)
	fs.Int64Var(
		&f.events, "continue-events", 0,
		"ask it to continue as new when it has so many events; 0 for no limit (default 10000)",
	)
	fs.Var(&f.workflow, "timeout-workflow", "limit of the whole run, or NONE (default one year)")
	fs.StringArrayVar(&f.start.TagList, "tag", nil, "a tag to show in lists; may be repeated")
	fs.Var(
		cli.AttributesFlag{To: &f.start.Attributes},
		"attribute",
		"what to show in lists; may be repeated",
	)
}

func (f *alwaysFlags) alwaysOn(cmd *cobra.Command, a *cli.App, id string) (*ops.AlwaysOn, error) {
	if f.start.Type == "" {
		return nil, cli.Usage(cmd, errors.New("--type is missing: say which workflow it is"))
	}
	restart := ops.RestartPolicy(f.restart)
	if err := restart.Validate("--restart"); err != nil {
		return nil, cli.Usage(cmd, err)
	}
	input, err := f.input.Read(cmd, a.Stdin)
	if err != nil {
		return nil, err
	}
	start := f.start
	start.WorkflowID, start.Input = id, input
	start.ExecutionStartToCloseTimeout = schemas.Duration(f.workflow.Value)
	after, events := cmd.Flags().Changed("continue-after"), cmd.Flags().Changed("continue-events")
	if after || events {
		p := schemas.ContinuationPolicy{After: schemas.Duration(time.Hour), Events: 10_000}
		if after {
			p.After = schemas.Duration(f.after.Value)
		}
		if events {
			p.Events = f.events
		}
		start.Continuation = &p
	}
	return &ops.AlwaysOn{Start: start, Restart: restart}, nil
}

func alwaysList(a *cli.App) *cobra.Command {
	var o drover.AlwaysOnOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the always-on workflows and their status",
		Args:  cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				now := time.Now()
				none := `no always-on workflows: "drover always-on add" adds one`
				row := func(r ops.AlwaysOnRecord) []string { return AlwaysRow(&r, now) }
				return cli.Lines(a, cli.Table{Columns: alwaysColumns, None: none},
					c.AlwaysOn(ctx, o), row)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.Prefix, "prefix", "", "only ids that begin so")
	fs.IntVar(&o.Limit, "limit", 0, "at most so many (default all)")
	return cmd
}

var alwaysColumns = []cli.Column{
	{Head: "ID", Keep: 16},
	{Head: "TYPE", Keep: 12},
	{Head: "STATE"},
	{Head: "SINCE"},
	{Head: "STARTS", Drop: 2},
	{Head: "FAILURES", Drop: 1},
}

// AlwaysRow is a row of the table of always-on workflows.
func AlwaysRow(r *ops.AlwaysOnRecord, now time.Time) []string {
	state, at := AlwaysState(r)
	since := "-"
	if at != 0 {
		since = cli.Span(max(now.Sub(at.Time()), 0))
	}
	return []string{
		cli.Word(r.AlwaysOn.Start.WorkflowID, cli.Whole),
		cli.Word(r.AlwaysOn.Start.Type, cli.Whole), state, since, fmt.Sprint(r.Starts),
		fmt.Sprint(r.Failures),
	}
}

// AlwaysState is how an always-on workflow stands, and since when.
func AlwaysState(r *ops.AlwaysOnRecord) (state string, since schemas.Timestamp) {
	switch {
	case r.Stopped:
		return "stopped", r.StoppedAt
	case r.Failures >= ops.FailingAfter:
		return "failing", r.EndedAt
	case r.Open:
		return "running", r.StartedAt
	case r.Status == "" && r.Refusal == "":
		return "starting", r.CreatedAt
	case r.NotBefore == 0 && r.AlwaysOn.Restart == ops.RestartOnFailure:
		return "ended", r.EndedAt
	}
	return "waiting", r.EndedAt
}

func alwaysShow(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show an always-on workflow: status, and how it ended last",
		Args:  cli.Filled("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				r, err := c.ShowAlwaysOn(ctx, args[0])
				if err != nil {
					return err
				}
				if r.V = 0; a.JSON {
					return a.Document(r)
				}
				_, err = a.Stdout.Write(alwaysText(r.Record))
				return err
			})
		},
	}
}

// continueWords says when a run is asked to continue as new.
func continueWords(p *schemas.ContinuationPolicy) string {
	var all []string
	if p.After != 0 {
		all = append(all, "after "+cli.ShortSpan(p.After))
	}
	if p.Events != 0 {
		all = append(all, fmt.Sprintf("after %d events", p.Events))
	}
	if len(all) == 0 {
		return "never"
	}
	return strings.Join(all, " or ")
}

// alwaysText lays an always-on workflow out for people.
func alwaysText(r *ops.AlwaysOnRecord) []byte {
	var b bytes.Buffer
	if r == nil {
		return nil
	}
	t := tabwriter.NewWriter(&b, 2, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	start, state := &r.AlwaysOn.Start, ""
	row("workflow", "%s", cli.Word(start.WorkflowID, cli.Whole))
	row("type", "%s", cli.Word(start.Type, cli.Whole))
	row("restart", "%s", cmp.Or(r.AlwaysOn.Restart, ops.RestartAlways))
	if p := start.Continuation; p != nil {
		row("continue", "%s", continueWords(p))
	}
	state, since := AlwaysState(r)
	row("state", "%s since %s", state, cli.When(since))
	if r.Stopped {
		row("stopped by", "%s %s", cli.Sentence(r.StoppedBy), cli.Sentence(r.Reason))
	}
	if r.Run != "" {
		row("run", "%s, begun %s", cli.Word(r.Run, cli.Whole), cli.When(r.StartedAt))
	}
	row("starts", "%d", r.Starts)
	if r.Status != "" {
		row("last end", "%s", strings.TrimRight(fmt.Sprintf("%s %s %s", r.Status,
			cli.When(r.EndedAt), cli.Sentence(r.EndReason)), " "))
	}
	if r.Refusal != "" {
		row("refused", "%s", cli.Sentence(r.Refusal))
	}
	if r.Failures > 0 {
		row("failures", "%d in a row", r.Failures)
	}
	if r.NotBefore != 0 && !r.Open && !r.Stopped {
		row("next start", "%s", cli.When(r.NotBefore))
	}
	row("added", "%s by %s", cli.When(r.CreatedAt), cli.Sentence(r.Identity))
	t.Flush()
	return b.Bytes()
}

func alwaysStop(a *cli.App) *cobra.Command {
	var o drover.StopAlwaysOnOptions
	cmd := &cobra.Command{
		Use:   "stop ID",
		Short: "Stop an always-on workflow until it is started again",
		Long: `Keep an always-on workflow down until "drover always-on start". Its open run is
asked to end, as by "drover cancel".`,
		Args: cli.Filled("ID"),
		RunE: changeAlways(a, "stopped", "was stopped before:",
			func(ctx context.Context, c *drover.Client, id string) (*ops.AlwaysResponse, error) {
				return c.StopAlwaysOn(ctx, id, &o)
			}),
	}
	endFlags(cmd, &o)
	return cmd
}

func alwaysStart(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "start ID",
		Short: "Start an always-on workflow that was stopped or is failing",
		Args:  cli.Filled("ID"),
		RunE: changeAlways(a, "started", "runs already:",
			func(ctx context.Context, c *drover.Client, id string) (*ops.AlwaysResponse, error) {
				return c.StartAlwaysOn(ctx, id, reason)
			}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

func alwaysRemove(a *cli.App) *cobra.Command {
	var o drover.StopAlwaysOnOptions
	cmd := &cobra.Command{
		Use:   "remove ID",
		Short: "Remove an always-on workflow; its open run is asked to end",
		Args:  cli.Filled("ID"),
		RunE: changeAlways(a, "removed", "was removed before:",
			func(ctx context.Context, c *drover.Client, id string) (*ops.AlwaysResponse, error) {
				return c.RemoveAlwaysOn(ctx, id, &o)
			}),
	}
	endFlags(cmd, &o)
	return cmd
}

// endFlags say what becomes of the open run.
func endFlags(cmd *cobra.Command, o *drover.StopAlwaysOnOptions) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&o.Terminate, "terminate", false,
		"end the open run at once (default: ask it to end)")
	fs.BoolVar(&o.KeepRun, "keep-run", false, "leave the open run alone")
	fs.StringVar(&o.Reason, "reason", "", "why")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if o.Terminate && o.KeepRun {
			return cli.Usage(
				cmd,
				errors.New("--terminate and --keep-run exclude each other: leave out one of them"),
			)
		}
		return nil
	}
}

// changeAlways makes the RunE of a command that does one thing to the always-on workflow ID.
func changeAlways(
	a *cli.App, changed, not string,
	do func(context.Context, *drover.Client, string) (*ops.AlwaysResponse, error),
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
			r, err := do(ctx, c, args[0])
			if err != nil {
				return err
			}
			if r.V = 0; a.JSON {
				return a.Document(r)
			}
			done := changed
			if !r.Changed {
				done = not
			}
			return a.Say("%s always-on workflow %s", done, cli.Word(args[0], 256))
		})
	}
}

// alwaysFields are the flags for the fields that a refusal names.
var alwaysFields = inRequest(
	"alwaysOn.",
	"start.workflowId",
	"ID",
	"start.typeVersion",
	"--type-version",
	"start.type",
	"--type",
	"start.input",
	"--input",
	"start.continuation.after",
	"--continue-after",
	"start.continuation.events",
	"--continue-events",
)

// refusedAlways names in a refusal the flags in the place of fields.
func refusedAlways(err error) error { return cli.RefusedIn(alwaysFields, err) }

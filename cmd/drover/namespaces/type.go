package namespaces

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

func TypeCommand(a *cli.App) *cobra.Command {
	cmd := cli.GroupCommand(a, "type", "Register and deprecate workflow and activity types", "")
	cmd.AddCommand(
		typeRegisterCommand(a),
		typeChangeCommand(a, "deprecate", "deprecated",
			"Allow no new workflows or activities of a type; what runs goes on",
			(*drover.Client).DeprecateType),
		typeChangeCommand(a, "undeprecate", "undeprecated", "Undo the deprecation of a type",
			(*drover.Client).UndeprecateType),
		typeDeleteCommand(a),
		typeDescribeCommand(a),
		typeListCommand(a),
	)
	return cmd
}

// typeArgs are KIND and NAME.
func typeArgs(cmd *cobra.Command, args []string) error {
	if err := cli.ArgNames("KIND", "NAME")(cmd, args); err != nil {
		return err
	}
	return checkKind("KIND", args[0])
}

func checkKind(what, kind string) error {
	if kind != string(schemas.WorkflowKind) && kind != string(schemas.ActivityKind) {
		return fmt.Errorf("%s is %q: use workflow or activity", what, kind)
	}
	return nil
}

func versionFlag(cmd *cobra.Command, version *string) {
	cmd.Flags().StringVar(version, "version", "",
		"version of the type, or --type-version (default the type without a version)")
	// As start has it, where --version would be taken for that of the program.
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "type-version" {
			name = "version"
		}
		return pflag.NormalizedName(name)
	})
}

// typeName shows a type as one would write it.
func typeName(t *schemas.TypeInfo) string {
	s := string(t.Kind) + " type " + cli.Word(t.Name, 256)
	if t.Version != "" {
		s += " version " + cli.Word(t.Version, cli.Whole)
	}
	return s
}

type typeFlags struct {
	version, description             string
	list, childPolicy                string
	priority                         int
	workflow, decider, wait          cli.DurationFlag
	toStart, run, toClose, heartbeat cli.DurationFlag
	retry                            schemas.RetryPolicy
	retryInterval, retryLongest      cli.DurationFlag
	notIdempotent                    bool
}

// The flags that make sense for one kind only.
var (
	workflowTypeFlags = []string{
		"timeout-workflow", "timeout-decider", "timeout-decider-wait", "child-policy",
	}
	retryFlags = []string{
		"retry-attempts", "retry-interval", "retry-backoff", "retry-longest", "retry-except",
	}
	activityTypeFlags = append([]string{"not-idempotent"}, retryFlags...)
)

func typeRegisterCommand(a *cli.App) *cobra.Command {
	var f typeFlags
	cmd := &cobra.Command{
		Use:   "register KIND NAME",
		Short: "Register a workflow or activity type with its defaults",
		Long: `Register a type: a name, a version, and the defaults of what is started with it.
KIND is workflow or activity.

A registered type never changes. The same registration again does nothing; another one under the
same name and version is refused: register a new version. For a workflow type, the flags of
activities are the defaults of its activities.`,
		Example: `  drover type register workflow order --version 2 --timeout-workflow 24h --list billing
  drover type register activity charge --version 1 --list billing --start-to-close 30s --retry-attempts 5`,
		Args: typeArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.typeOptions(cmd, schemas.TypeKind(args[0]))
			if err != nil {
				return err
			}
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				t, err := c.RegisterType(ctx, schemas.TypeKind(args[0]), args[1], o)
				if err != nil {
					return err
				}
				return typeSaid(a, t, "registered")
			})
		},
	}
	f.register(cmd)
	return cmd
}

func (f *typeFlags) register(cmd *cobra.Command) {
	for _, d := range []*cli.DurationFlag{
		&f.workflow, &f.decider, &f.wait, &f.toStart, &f.run, &f.toClose, &f.heartbeat,
		&f.retryLongest,
	} {
		d.Unlimited = true
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	versionFlag(cmd, &f.version)
	fs.StringVar(&f.description, "description", "", "what the type is for")
	fs.Var(&f.workflow, "timeout-workflow", "workflow: limit of the whole run, or NONE")
	fs.Var(&f.decider, "timeout-decider", "workflow: limit of one decision, or NONE")
	fs.Var(&f.wait, "timeout-decider-wait", "workflow: limit of the wait for a decider, or NONE")
	fs.StringVar(&f.childPolicy, "child-policy", "",
		"workflow: what becomes of children: terminate, cancel or abandon")
	fs.IntVar(&f.priority, "priority", 0,
		"activity: tasks above 0 come first, those below 0 last; workflow: it is written into "+
			"the history and changes no order")
	fs.StringVar(&f.list, "list", "", "task list of its activities")
	fs.Var(&f.toStart, "schedule-to-start", "limit of an activity's wait for a worker, or NONE")
	fs.Var(&f.run, "start-to-close", "limit of one attempt of an activity, or NONE")
	fs.Var(&f.toClose, "schedule-to-close", "limit of an activity with all its attempts, or NONE")
	fs.Var(&f.heartbeat, "heartbeat", "longest silence of an activity's worker, or NONE")
	fs.IntVar(&f.retry.MaximumAttempts, "retry-attempts", 0,
		"activity: at most so many attempts; any --retry flag switches retries on (default no limit)")
	fs.Var(&f.retryInterval, "retry-interval",
		"activity: wait after the first attempt (default 1s)")
	fs.Float64Var(&f.retry.BackoffCoefficient, "retry-backoff", 0,
		"activity: by how much each wait is longer than the one before (default 2)")
	fs.Var(&f.retryLongest, "retry-longest",
		"activity: longest wait, or NONE (default 100 times the first)")
	fs.StringArrayVar(&f.retry.NonRetryable, "retry-except", nil,
		"activity: a reason after which there is no other attempt; may be repeated")
	fs.BoolVar(&f.notIdempotent, "not-idempotent", false, "activity: begin it at most once")
}

func (f *typeFlags) typeOptions(
	cmd *cobra.Command, kind schemas.TypeKind,
) (*drover.TypeOptions, error) {
	other := activityTypeFlags
	if kind == schemas.ActivityKind {
		other = workflowTypeFlags
	}
	for _, name := range other {
		if cmd.Flags().Changed(name) {
			return nil, cli.Usage(cmd, fmt.Errorf("--%s is not for %s types", name, kind))
		}
	}
	o := &drover.TypeOptions{Version: f.version, Description: f.description}
	activity := schemas.ActivityDefaults{
		List: f.list, ScheduleToStartTimeout: schemas.Duration(f.toStart.Value),
		StartToCloseTimeout:    schemas.Duration(f.run.Value),
		ScheduleToCloseTimeout: schemas.Duration(f.toClose.Value),
		HeartbeatTimeout:       schemas.Duration(f.heartbeat.Value),
	}
	if kind == schemas.WorkflowKind {
		policy, err := cli.ParseChildPolicy(cmd, f.childPolicy)
		o.Workflow = &schemas.WorkflowTypeDefaults{
			ExecutionStartToCloseTimeout: schemas.Duration(f.workflow.Value),
			TaskStartToCloseTimeout:      schemas.Duration(f.decider.Value),
			TaskScheduleToStartTimeout:   schemas.Duration(f.wait.Value), TaskPriority: f.priority,
			ChildPolicy: policy,
		}
		if activity != (schemas.ActivityDefaults{}) {
			o.Workflow.ActivityDefaults = &activity
		}
		return o, err
	}
	o.Activity = &schemas.ActivityTypeDefaults{
		List: activity.List, TaskPriority: f.priority,
		ScheduleToStartTimeout: activity.ScheduleToStartTimeout,
		StartToCloseTimeout:    activity.StartToCloseTimeout,
		ScheduleToCloseTimeout: activity.ScheduleToCloseTimeout,
		HeartbeatTimeout:       activity.HeartbeatTimeout, NotIdempotent: f.notIdempotent,
	}
	for _, name := range retryFlags {
		if cmd.Flags().Changed(name) {
			f.retry.InitialInterval, f.retry.MaximumInterval = schemas.Duration(
				f.retryInterval.Value), schemas.Duration(f.retryLongest.Value)
			o.Activity.Retry = &f.retry
		}
	}
	return o, nil
}

// typeSaid prints what became of a type.
func typeSaid(a *cli.App, t *schemas.TypeInfo, done string) error {
	switch {
	case a.JSON && t.Status == "": // it is deleted, and nothing else is known of it
		return a.Document(struct {
			Kind    schemas.TypeKind `json:"kind"`
			Name    string           `json:"name"`
			Version string           `json:"version,omitempty"`
			Deleted bool             `json:"deleted"`
		}{t.Kind, t.Name, t.Version, true})
	case a.JSON:
		t.V = 0
		return a.Document(t)
	}
	if done == "registered" && t.Status == schemas.TypeDeprecated {
		return a.Say("registered %s, which is deprecated", typeName(t))
	}
	return a.Say("%s %s", done, typeName(t))
}

// typeChangeCommand is a command that changes where a type stands.
func typeChangeCommand(
	a *cli.App, verb, done, short string, do func(
		*drover.Client, context.Context, schemas.TypeKind, string, string,
	) (*schemas.TypeInfo, error),
) *cobra.Command {
	var version string
	cmd := &cobra.Command{
		Use:   verb + " KIND NAME",
		Short: short,
		Args:  typeArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				t, err := do(c, ctx, schemas.TypeKind(args[0]), args[1], version)
				if err != nil {
					return err
				}
				return typeSaid(a, t, done)
			})
		},
	}
	versionFlag(cmd, &version)
	return cmd
}

func typeDeleteCommand(a *cli.App) *cobra.Command {
	return typeChangeCommand(a, "delete", "deleted", "Delete a deprecated type", func(
		c *drover.Client, ctx context.Context, kind schemas.TypeKind, name, version string,
	) (*schemas.TypeInfo, error) {
		gone := &schemas.TypeInfo{Kind: kind, Name: name, Version: version}
		return gone, c.DeleteType(ctx, kind, name, version)
	})
}

func typeDescribeCommand(a *cli.App) *cobra.Command {
	var version string
	cmd := &cobra.Command{
		Use:   "describe KIND NAME",
		Short: "Show a type and its defaults",
		Args:  typeArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				t, err := c.DescribeType(ctx, schemas.TypeKind(args[0]), args[1], version)
				if err != nil {
					return err
				}
				if t.V = 0; a.JSON {
					return a.Document(t)
				}
				text, err := typeText(t)
				if err != nil {
					return err
				}
				_, err = a.Stdout.Write(text)
				return err
			})
		},
	}
	versionFlag(cmd, &version)
	return cmd
}

// typeText lays a type out for people. Its defaults are shown under the names that they have in
// JSON.
func typeText(t *schemas.TypeInfo) ([]byte, error) {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 2, 8, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t%s\n", t.Kind, strings.TrimPrefix(typeName(t), string(t.Kind)+" type "))
	fmt.Fprintf(w, "status\t%s\n", strings.ToLower(string(t.Status)))
	fmt.Fprintf(w, "registered\t%s\n", cli.When(t.CreatedAt))
	if t.DeprecatedAt != 0 {
		fmt.Fprintf(w, "deprecated\t%s\n", cli.When(t.DeprecatedAt))
	}
	if t.Description != "" {
		fmt.Fprintf(w, "description\t%s\n", cli.Sentence(t.Description))
	}
	for _, d := range []any{t.Workflow, t.Activity} {
		if err := typeDefaults(w, "", d); err != nil {
			return nil, err
		}
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func typeDefaults(w *tabwriter.Writer, prefix string, defaults any) error {
	raw, err := json.Marshal(defaults)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name][0] == '{' {
			if err := typeDefaults(w, prefix+name+".", fields[name]); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%s%s\t%s\n", prefix, name, fields[name])
	}
	return nil
}

func typeListCommand(a *cli.App) *cobra.Command {
	var o drover.TypeListOptions
	var kind string
	var deprecated bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List registered types",
		Args:  cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kind != "" {
				if err := checkKind("--kind", kind); err != nil {
					return cli.Usage(cmd, err)
				}
			}
			o.Kind = schemas.TypeKind(kind)
			if deprecated {
				o.Status = schemas.TypeDeprecated
			}
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				types := func(yield func(schemas.TypeInfo, error) bool) {
					for t, err := range c.ListTypes(ctx, o) {
						if t.V = 0; !yield(t, err) {
							return
						}
					}
				}
				return cli.Lines(a, cli.Table{
					Columns: typeColumns, None: `no types: "drover type register" makes one`,
				}, types, typeRow)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&kind, "kind", "", "only types of workflows or activities: workflow or activity")
	fs.StringVar(&o.Prefix, "prefix", "", "only names that begin so")
	fs.BoolVar(&deprecated, "deprecated", false, "only deprecated types")
	fs.IntVar(&o.Limit, "limit", 0, "at most so many (default all)")
	return cmd
}

var typeColumns = []cli.Column{
	{Head: "KIND"},
	{Head: "NAME", Keep: 16},
	{Head: "VERSION", Keep: 12},
	{Head: "STATUS"},
	{Head: "REGISTERED", Drop: 1},
	{Head: "DESCRIPTION", Keep: 20},
}

func typeRow(t schemas.TypeInfo) []string {
	version := "-"
	if t.Version != "" {
		version = cli.Word(t.Version, 64)
	}
	return []string{
		string(t.Kind), cli.Word(t.Name, cli.Whole), version, strings.ToLower(string(t.Status)),
		cli.When(t.CreatedAt), cli.Sentence(t.Description),
	}
}

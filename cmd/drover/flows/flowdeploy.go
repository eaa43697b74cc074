package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/decider/flow/store"
	"github.com/droverhq/drover/schemas"
)

func flowDeployCommand(a *cli.App) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "deploy FILE…",
		Short: "Store flows and step types, and make them the current versions",
		Long: `Store flows and step types in the namespace. Each content is a version of its own;
the same content again changes nothing, and versions that are there stay.

A flow takes the step types that it uses as they are now: those of the files before it, else those
that are registered. Deploy the flow again to have it use a later one. If any file is wrong,
nothing is deployed. It needs the right to write the bucket of flows: see "drover auth template
operator".`,
		Example: `  drover flow deploy types/*.yaml flows/*.yaml --dry-run
  drover flow deploy order.yaml`,
		Args: atLeastOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := readFlows(a, cmd, args)
			if err != nil {
				return err
			}
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				return deployFlows(ctx, a, cli.FlowStore(c), files, dryRun)
			})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be deployed, and write nothing")
	return cmd
}

// Deployment is the document about one file.
type Deployment struct {
	File     string `json:"file"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Previous string `json:"previous,omitempty"`
	Changed  bool   `json:"changed"`
	Stored   bool   `json:"stored"` // the version was not there before
	DryRun   bool   `json:"dryRun,omitempty"`
}

func deployFlows(
	ctx context.Context, a *cli.App, s *store.Store, files []*flowFile, dryRun bool,
) error {
	const op = "flow deploy"
	wrong, err := parseFlows(ctx, files, s)
	if err != nil {
		return cli.FlowError(op, err)
	}
	if wrong > 0 {
		for _, f := range files {
			if len(f.wrong) == 0 {
				continue
			}
			show := func() error { return showFaults(a, f) }
			if a.JSON {
				show = func() error { return a.Document(f.report()) }
			}
			if err := show(); err != nil {
				return err
			}
		}
		return WrongFlows(op, wrong, len(files), ", so nothing was deployed")
	}
	// What the store refuses, it refuses before anything is written.
	plans := make([]*store.Deployed, len(files))
	for i, f := range files {
		if plans[i], err = s.Plan(ctx, f.kind(), f.Definition); err != nil {
			return refusedFile(op+" "+f.name, err)
		}
	}
	if err := refuseTwins(op, files, plans); err != nil {
		return err
	}
	for i, f := range files {
		d := plans[i]
		if !dryRun {
			if d, err = s.Deploy(ctx, f.kind(), f.Definition); err != nil {
				return cli.FlowError(op+" "+f.name, err)
			}
		}
		if err := sayDeployed(a, f.name, d, dryRun); err != nil {
			return err
		}
	}
	return nil
}

// refuseTwins refuses two files that define the same: which of them were current would be up to the
// order of the arguments.
func refuseTwins(op string, files []*flowFile, plans []*store.Deployed) error {
	seen := map[string]string{}
	for i, d := range plans {
		name := flowName(d.Kind, d.Name)
		if first, ok := seen[name]; ok {
			return &cli.FlowsError{
				Text: fmt.Sprintf("%s: %s and %s both define %s, so nothing was deployed",
					op, first, files[i].name, name),
				Hint: "deploy one of them, or give the other one another name",
			}
		}
		seen[name] = files[i].name
	}
	return nil
}

// refusedFile is FlowError where a file is at fault, which is no wrong usage.
func refusedFile(op string, err error) error {
	if e, ok := errors.AsType[*schemas.Error](err); ok && e.Code == schemas.CodeInvalid {
		return &cli.FlowsError{Text: op + ": " + e.Message, Hint: e.Hint}
	}
	return cli.FlowError(op, err)
}

func sayDeployed(a *cli.App, file string, d *store.Deployed, dryRun bool) error {
	if a.JSON {
		return a.Document(Deployment{
			file, string(d.Kind), d.Name, d.Version, d.Previous, d.Changed, d.Stored, dryRun,
		})
	}
	verb := "deployed"
	if dryRun {
		verb = "would deploy"
	}
	name := flowName(d.Kind, d.Name)
	switch {
	case !d.Changed && d.Stored:
		return a.Say("%s %s: version %s, which was current and missing", verb, name, d.Version)
	case !d.Changed:
		return a.Say("%s is unchanged: version %s", name, d.Version)
	case d.Previous != "" && !d.Stored:
		return a.Say("%s %s: back to version %s, before that %s", verb, name, d.Version, d.Previous)
	default:
		return a.Say("%s %s: version %s, before that %s",
			verb, name, d.Version, cmp.Or(d.Previous, "none"))
	}
}

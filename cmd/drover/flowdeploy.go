package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider/flow/store"
	"github.com/droverhq/drover/schemas"
)

func flowDeployCommand(a *app) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "deploy FILE…",
		Short: "Store flows and step types, and make them the current versions",
		Long: `Store flows and step types in the namespace. Each content is a version of its own; the same content again changes nothing, and versions
that are there stay.

A flow takes the step types that it uses as they are now: those of the files before it, else those that are registered. Deploy the flow
again to have it use a later one. If any file is wrong, nothing is deployed. It needs the right to write the bucket of flows:
see "drover auth template operator".`,
		Example: `  drover flow deploy types/*.yaml flows/*.yaml --dry-run
  drover flow deploy order.yaml`,
		Args: atLeastOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := a.readFlows(cmd, args)
			if err != nil {
				return err
			}
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error { return a.deploy(ctx, flowStore(c), files, dryRun) })
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be deployed, and write nothing")
	return cmd
}

// deployment is the document about one file.
type deployment struct {
	File     string `json:"file"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Previous string `json:"previous,omitempty"`
	Changed  bool   `json:"changed"`
	Stored   bool   `json:"stored"` // the version was not there before
	DryRun   bool   `json:"dryRun,omitempty"`
}

func (a *app) deploy(ctx context.Context, s *store.Store, files []*flowFile, dryRun bool) error {
	const op = "flow deploy"
	wrong, err := parseFlows(ctx, files, s)
	if err != nil {
		return flowError(op, err)
	}
	if wrong > 0 {
		for _, f := range files {
			if len(f.wrong) == 0 {
				continue
			}
			show := func() error { return a.showFaults(f) }
			if a.json {
				show = func() error { return a.document(f.report()) }
			}
			if err := show(); err != nil {
				return err
			}
		}
		return wrongFlows(op, wrong, len(files), ", so nothing was deployed")
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
				return flowError(op+" "+f.name, err)
			}
		}
		if err := a.deployed(f.name, d, dryRun); err != nil {
			return err
		}
	}
	return nil
}

// refuseTwins refuses two files that define the same: which of them were current would be up to the order of the arguments.
func refuseTwins(op string, files []*flowFile, plans []*store.Deployed) error {
	seen := map[string]string{}
	for i, d := range plans {
		name := flowName(d.Kind, d.Name)
		if first, ok := seen[name]; ok {
			return &flowsError{fmt.Sprintf("%s: %s and %s both define %s, so nothing was deployed", op, first, files[i].name, name), "deploy one of them, or give the other one another name"}
		}
		seen[name] = files[i].name
	}
	return nil
}

// refusedFile is flowError where a file is at fault, which is no wrong usage.
func refusedFile(op string, err error) error {
	if e, ok := errors.AsType[*schemas.Error](err); ok && e.Code == schemas.CodeInvalid {
		return &flowsError{op + ": " + e.Message, e.Hint}
	}
	return flowError(op, err)
}

func (a *app) deployed(file string, d *store.Deployed, dryRun bool) error {
	if a.json {
		return a.document(deployment{file, string(d.Kind), d.Name, d.Version, d.Previous, d.Changed, d.Stored, dryRun})
	}
	verb := "deployed"
	if dryRun {
		verb = "would deploy"
	}
	name := flowName(d.Kind, d.Name)
	switch {
	case !d.Changed && d.Stored:
		return a.say("%s %s: version %s, which was current and missing", verb, name, d.Version)
	case !d.Changed:
		return a.say("%s is unchanged: version %s", name, d.Version)
	case d.Previous != "" && !d.Stored:
		return a.say("%s %s: back to version %s, before that %s", verb, name, d.Version, d.Previous)
	default:
		return a.say("%s %s: version %s, before that %s", verb, name, d.Version, cmp.Or(d.Previous, "none"))
	}
}

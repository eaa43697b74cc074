package flows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/decider/flow/graph"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/store"
	"github.com/droverhq/drover/schemas"
)

// FlowEntry is the document about a deployed flow.
type FlowEntry struct {
	Kind        string            `json:"kind"`
	Name        string            `json:"name"`
	Version     string            `json:"version,omitempty"`
	Description string            `json:"description,omitempty"`
	Steps       int               `json:"steps,omitempty"`
	DeployedAt  schemas.Timestamp `json:"deployedAt"`
	Key         string            `json:"key"`             // in the bucket of flows
	Error       string            `json:"error,omitempty"` // why it cannot be read
}

func flowListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List deployed flows and step types",
		Long: `List the flows and the registered step types of the namespace, each with its
current version and since when it is that. An entry that cannot be read is shown with the reason.`,
		Args: cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				all, err := cli.FlowStore(c).List(ctx)
				if err != nil {
					return cli.FlowError("flow list", err)
				}
				each := func(yield func(FlowEntry, error) bool) {
					for _, e := range all {
						if !yield(entryOf(e), nil) {
							return
						}
					}
				}
				return cli.Lines(a, cli.Table{
					Columns: flowColumns, None: `no flows: "drover flow deploy FILE" stores one`,
				}, each, flowRow)
			})
		},
	}
}

var flowColumns = []cli.Column{
	{Head: "KIND"},
	{Head: "NAME", Keep: 16},
	{Head: "VERSION", Keep: 12},
	{Head: "STEPS"},
	{Head: "DEPLOYED", Drop: 1},
	{Head: "DESCRIPTION", Keep: 20},
}

func entryOf(e store.Entry) FlowEntry {
	f := FlowEntry{string(e.Kind), e.Name, e.Version, e.Description, e.Steps, e.Deployed, e.Key, ""}
	if e.Err != nil {
		f.Error = e.Err.Error()
	}
	return f
}

func flowRow(e FlowEntry) []string {
	if e.Error != "" {
		return []string{
			cli.Word(e.Kind, cli.Whole), cli.Word(e.Name, cli.Whole), "?", "?",
			cli.When(e.DeployedAt),
			"key " + cli.Word(e.Key, cli.Whole) + ": " + cli.Sentence(e.Error),
		}
	}
	return []string{
		e.Kind, cli.Word(e.Name, cli.Whole), e.Version, fmt.Sprint(e.Steps), cli.When(e.DeployedAt),
		cli.Sentence(e.Description),
	}
}

// FlowDocument is the document about one version.
type FlowDocument struct {
	Kind       string          `json:"kind"`
	Name       string          `json:"name"`
	Version    string          `json:"version"`
	Versions   []string        `json:"versions"`
	Definition json.RawMessage `json:"definition"`
}

// deployedFlags choose what of the namespace is meant.
type deployedFlags struct {
	version  string
	stepType bool
}

func (f *deployedFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.version, "version", "",
		"a version, or how it begins (default the current one)")
	cmd.Flags().BoolVar(&f.stepType, "step-type", false, "NAME is the id of a step type")
}

func (f *deployedFlags) kind() store.Kind {
	if f.stepType {
		return store.StepType
	}
	return store.Flow
}

func flowShowCommand(a *cli.App) *cobra.Command {
	var f deployedFlags
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a deployed flow",
		Long: `Show a deployed flow: its versions and its steps. With --json the whole definition
is shown, as the deciders read it.

Comments and layout of the file are not kept: keep the file.`,
		Args: cli.Filled("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				const op = "flow show"
				d, version, err := cli.FlowStore(c).Get(ctx, f.kind(), args[0], f.version)
				if err != nil {
					return cli.FlowError(op, err)
				}
				versions, err := cli.FlowStore(c).Versions(ctx, f.kind(), args[0])
				if err != nil {
					return cli.FlowError(op, err)
				}
				return showFlow(a, d, FlowDocument{
					Kind: string(f.kind()), Name: args[0], Version: version, Versions: versions,
				})
			})
		},
	}
	f.register(cmd)
	return cmd
}

func showFlow(a *cli.App, d *model.Definition, doc FlowDocument) error {
	if a.JSON {
		data, err := d.Encode()
		if err != nil {
			return err
		}
		var stored struct{ Definition json.RawMessage }
		if err := json.Unmarshal(data, &stored); err != nil {
			return err
		}
		doc.Definition = stored.Definition
		return a.Document(doc)
	}
	var b strings.Builder
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name+":", value)
		}
	}
	field(map[string]string{"flow": "name", "type": "id"}[doc.Kind], cli.Word(doc.Name, 256))
	field("version", doc.Version)
	field("versions", fmt.Sprint(len(doc.Versions)))
	for _, v := range doc.Versions {
		if v != doc.Version {
			field("", v)
		}
	}
	if d.Description != "" {
		field("description", cli.Sentence(strings.Join(strings.Fields(d.Description), " ")))
	}
	if d.Shorthand != "" {
		field("shorthand", cli.Sentence(d.Shorthand))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Parameters)) {
		field("parameter", strings.TrimSpace(cli.Word(name, 64)+" "+d.Parameters[name].Type))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Types)) {
		field("step type", cli.Word(name, 64)+" version "+d.Types[name].Version())
	}
	b.WriteString("\n" + graph.Of(d).Text())
	_, err := a.Stdout.Write([]byte(b.String()))
	return err
}

func flowGraphCommand(a *cli.App) *cobra.Command {
	var f deployedFlags
	var svg string
	cmd := &cobra.Command{
		Use:   "graph FILE|NAME",
		Short: "Draw a flow as a tree, or as a picture",
		Long: `Draw a flow: its steps, blocks, handlers, loops and jumps. What ends in .yaml, .yml
or .json, has a slash or is - is a file and needs no server; anything else is the name of a
deployed flow.`,
		Example: `  drover flow graph order.yaml
  drover flow graph order --svg order.svg`,
		Args: cli.Filled("FILE or NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if isFlowFile(args[0]) {
				d, err := flowOfFile(a, cmd, args[0], f)
				if err != nil {
					return err
				}
				return drawFlow(a, graph.Of(d), svg)
			}
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				d, _, err := cli.FlowStore(c).Get(ctx, f.kind(), args[0], f.version)
				if err != nil {
					return cli.FlowError("flow graph", err)
				}
				return drawFlow(a, graph.Of(d), svg)
			})
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&svg, "svg", "", "write a picture to this file")
	return cmd
}

func isFlowFile(arg string) bool {
	for _, end := range []string{".yaml", ".yml", ".json"} {
		if strings.HasSuffix(arg, end) {
			return true
		}
	}
	return arg == "-" || strings.ContainsAny(arg, `/\`)
}

func flowOfFile(
	a *cli.App, cmd *cobra.Command, name string, f deployedFlags,
) (*model.Definition, error) {
	if f.version != "" || f.stepType {
		return nil, cli.Usage(cmd, errors.New(
			"--version and --step-type are for deployed flows: leave them out with a file"))
	}
	file, err := readFlow(a, cmd, name)
	if err != nil {
		return nil, err
	}
	wrong, err := parseFlows(cmd.Context(), []*flowFile{file}, nil)
	if err != nil {
		return nil, err
	}
	if wrong > 0 {
		return nil, &cli.FlowsError{Text: "flow graph: " + cli.Printable(file.wrong.Error())}
	}
	return file.Definition, nil
}

func drawFlow(a *cli.App, n *graph.Node, svg string) error {
	if svg != "" {
		if err := os.WriteFile(svg, []byte(n.SVG()), 0o644); err != nil {
			return fmt.Errorf("flow graph: --svg: %w", err)
		}
		if !a.JSON {
			return a.Say("wrote %s", cli.Word(svg, 256))
		}
	}
	if a.JSON {
		return a.Document(n)
	}
	_, err := a.Stdout.Write([]byte(n.Text()))
	return err
}

package main

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
	"github.com/droverhq/drover/decider/flow/graph"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/store"
	"github.com/droverhq/drover/schemas"
)

// flowEntry is the document about a deployed flow.
type flowEntry struct {
	Kind        string            `json:"kind"`
	Name        string            `json:"name"`
	Version     string            `json:"version,omitempty"`
	Description string            `json:"description,omitempty"`
	Steps       int               `json:"steps,omitempty"`
	DeployedAt  schemas.Timestamp `json:"deployedAt"`
	Key         string            `json:"key"`             // in the bucket of flows
	Error       string            `json:"error,omitempty"` // why it cannot be read
}

func flowListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List deployed flows and step types",
		Long: `List the flows and the registered step types of the namespace, each with its current version and since when it is that. An entry that
cannot be read is shown with the reason.`,
		Args: argNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				all, err := flowStore(c).List(ctx)
				if err != nil {
					return flowError("flow list", err)
				}
				each := func(yield func(flowEntry, error) bool) {
					for _, e := range all {
						if !yield(entryOf(e), nil) {
							return
						}
					}
				}
				return lines(a, table{flowColumns, `no flows: "drover flow deploy FILE" stores one`}, each, flowRow)
			})
		},
	}
}

var flowColumns = []column{{head: "KIND"}, {head: "NAME", keep: 16}, {head: "VERSION", keep: 12}, {head: "STEPS"}, {head: "DEPLOYED", drop: 1}, {head: "DESCRIPTION", keep: 20}}

func entryOf(e store.Entry) flowEntry {
	f := flowEntry{string(e.Kind), e.Name, e.Version, e.Description, e.Steps, e.Deployed, e.Key, ""}
	if e.Err != nil {
		f.Error = e.Err.Error()
	}
	return f
}

func flowRow(e flowEntry) []string {
	if e.Error != "" {
		return []string{word(e.Kind, whole), word(e.Name, whole), "?", "?", when(e.DeployedAt), "key " + word(e.Key, whole) + ": " + sentence(e.Error)}
	}
	return []string{e.Kind, word(e.Name, whole), e.Version, fmt.Sprint(e.Steps), when(e.DeployedAt), sentence(e.Description)}
}

// flowNames completes names of flows.
func flowNames(ctx context.Context, c *drover.Client, _ string, yield func(name, about string)) {
	all, err := flowStore(c).List(ctx)
	if err != nil {
		return
	}
	for _, e := range all {
		if e.Err == nil {
			yield(e.Name, about(e.Description))
		}
	}
}

// flowDocument is the document about one version.
type flowDocument struct {
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
	cmd.Flags().StringVar(&f.version, "version", "", "a version, or how it begins (default the current one)")
	cmd.Flags().BoolVar(&f.stepType, "step-type", false, "NAME is the id of a step type")
}

func (f *deployedFlags) kind() store.Kind {
	if f.stepType {
		return store.StepType
	}
	return store.Flow
}

func flowShowCommand(a *app) *cobra.Command {
	var f deployedFlags
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a deployed flow",
		Long: `Show a deployed flow: its versions and its steps. With --json the whole definition is shown, as the deciders read it.

Comments and layout of the file are not kept: keep the file.`,
		Args: filled("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				const op = "flow show"
				d, version, err := flowStore(c).Get(ctx, f.kind(), args[0], f.version)
				if err != nil {
					return flowError(op, err)
				}
				versions, err := flowStore(c).Versions(ctx, f.kind(), args[0])
				if err != nil {
					return flowError(op, err)
				}
				return a.showFlow(d, flowDocument{Kind: string(f.kind()), Name: args[0], Version: version, Versions: versions})
			})
		},
	}
	f.register(cmd)
	return cmd
}

func (a *app) showFlow(d *model.Definition, doc flowDocument) error {
	if a.json {
		data, err := d.Encode()
		if err != nil {
			return err
		}
		var stored struct{ Definition json.RawMessage }
		if err := json.Unmarshal(data, &stored); err != nil {
			return err
		}
		doc.Definition = stored.Definition
		return a.document(doc)
	}
	var b strings.Builder
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name+":", value)
		}
	}
	field(map[string]string{"flow": "name", "type": "id"}[doc.Kind], word(doc.Name, 256))
	field("version", doc.Version)
	field("versions", fmt.Sprint(len(doc.Versions)))
	for _, v := range doc.Versions {
		if v != doc.Version {
			field("", v)
		}
	}
	if d.Description != "" {
		field("description", sentence(strings.Join(strings.Fields(d.Description), " ")))
	}
	if d.Shorthand != "" {
		field("shorthand", sentence(d.Shorthand))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Parameters)) {
		field("parameter", strings.TrimSpace(word(name, 64)+" "+d.Parameters[name].Type))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Types)) {
		field("step type", word(name, 64)+" version "+d.Types[name].Version())
	}
	b.WriteString("\n" + graph.Of(d).Text())
	_, err := a.stdout.Write([]byte(b.String()))
	return err
}

func flowGraphCommand(a *app) *cobra.Command {
	var f deployedFlags
	var svg string
	cmd := &cobra.Command{
		Use:   "graph FILE|NAME",
		Short: "Draw a flow as a tree, or as a picture",
		Long: `Draw a flow: its steps, blocks, handlers, loops and jumps. What ends in .yaml, .yml or .json, has a slash or is - is a file and needs no
server; anything else is the name of a deployed flow.`,
		Example: `  drover flow graph order.yaml
  drover flow graph order --svg order.svg`,
		Args: filled("FILE or NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if isFlowFile(args[0]) {
				d, err := a.flowOfFile(cmd, args[0], f)
				if err != nil {
					return err
				}
				return a.drawFlow(graph.Of(d), svg)
			}
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				d, _, err := flowStore(c).Get(ctx, f.kind(), args[0], f.version)
				if err != nil {
					return flowError("flow graph", err)
				}
				return a.drawFlow(graph.Of(d), svg)
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

func (a *app) flowOfFile(cmd *cobra.Command, name string, f deployedFlags) (*model.Definition, error) {
	if f.version != "" || f.stepType {
		return nil, usage(cmd, errors.New("--version and --step-type are for deployed flows: leave them out with a file"))
	}
	file, err := a.readFlow(cmd, name)
	if err != nil {
		return nil, err
	}
	wrong, err := parseFlows(cmd.Context(), []*flowFile{file}, nil)
	if err != nil {
		return nil, err
	}
	if wrong > 0 {
		return nil, &flowsError{text: "flow graph: " + printable(file.wrong.Error())}
	}
	return file.Definition, nil
}

func (a *app) drawFlow(n *graph.Node, svg string) error {
	if svg != "" {
		if err := os.WriteFile(svg, []byte(n.SVG()), 0o644); err != nil {
			return fmt.Errorf("flow graph: --svg: %w", err)
		}
		if !a.json {
			return a.say("wrote %s", word(svg, 256))
		}
	}
	if a.json {
		return a.document(n)
	}
	_, err := a.stdout.Write([]byte(n.Text()))
	return err
}

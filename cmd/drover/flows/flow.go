package flows

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/decider/flow/define"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/store"
)

func FlowCommand(a *cli.App) *cobra.Command {
	cmd := cli.GroupCommand(a, "flow", "Validate, run, deploy and show flows",
		`Validate, run, deploy and show flows: workflows that are written down in YAML.
docs/guides/flows.md has the language.

A file with an id at its top defines a step type, any other a flow.`)
	cmd.AddCommand(flowValidateCommand(a), flowDeployCommand(a), flowListCommand(a),
		flowShowCommand(a), flowGraphCommand(a), flowSchemaCommand(a), flowRunCommand(a))
	return cmd
}

// atLeastOne demands files.
func atLeastOne(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("FILE is missing")
	}
	return nil
}

// flowFile is a file and what it holds.
type flowFile struct {
	name string // for people
	text []byte
	*define.Result
	wrong model.Errors
}

// readFlow reads one file; - is standard input. One byte more than is allowed is enough for the
// parser to refuse it.
func readFlow(a *cli.App, cmd *cobra.Command, name string) (*flowFile, error) {
	if name == "-" {
		text, err := io.ReadAll(io.LimitReader(a.Stdin, model.MaxSize+1))
		return &flowFile{name: "stdin", text: text}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, cli.Usage(cmd, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, model.MaxSize+1))
	if err != nil {
		return nil, cli.Usage(cmd, err)
	}
	return &flowFile{name: name, text: text}, nil
}

func readFlows(a *cli.App, cmd *cobra.Command, names []string) ([]*flowFile, error) {
	var all []*flowFile
	for _, name := range names {
		f, err := readFlow(a, cmd, name)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// parseFlows parses files in order. A step type of one file is known to those after it, before what
// is registered; without a store nothing is.
func parseFlows(
	ctx context.Context, files []*flowFile, registered *store.Store,
) (wrong int, err error) {
	types := map[string]*model.Definition{}
	known := func(name string) (*model.Definition, bool) { d, ok := types[name]; return d, ok }
	for _, f := range files {
		parse := func(more func(string) (*model.Definition, bool)) (err error) {
			f.Result, err = define.Parse(f.name, f.text, more)
			return err
		}
		if registered != nil {
			err = registered.Known(ctx, known, parse)
		} else {
			err = parse(known)
		}
		var ok bool
		if f.wrong, ok = errors.AsType[model.Errors](err); err != nil && !ok {
			return 0, err
		}
		switch {
		case err != nil:
			wrong++
		case f.StepType:
			types[f.ID] = f.Definition
		}
	}
	return wrong, nil
}

// FlowReport is what validate says of a file.
type FlowReport struct {
	File     string      `json:"file"`
	Valid    bool        `json:"valid"`
	Kind     string      `json:"kind,omitempty"` // flow or type
	Name     string      `json:"name,omitempty"`
	Version  string      `json:"version,omitempty"`
	Steps    int         `json:"steps,omitempty"`
	Errors   []flowFault `json:"errors,omitempty"`
	Warnings []flowFault `json:"warnings,omitempty"`
}

type flowFault struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Excerpt string `json:"excerpt,omitempty"`
}

func faults(all []*model.Error) []flowFault {
	var out []flowFault
	for _, e := range all {
		out = append(out, flowFault{e.Line, e.Column, e.Problem, e.Hint, e.Excerpt})
	}
	return out
}

func (f *flowFile) kind() store.Kind {
	if f.StepType {
		return store.StepType
	}
	return store.Flow
}

func (f *flowFile) report() FlowReport {
	if len(f.wrong) > 0 {
		return FlowReport{File: f.name, Errors: faults(f.wrong)}
	}
	r := FlowReport{
		File: f.name, Valid: true, Kind: string(f.kind()), Name: cmp.Or(f.ID, f.Name),
		Version: f.Version(), Warnings: faults(f.Warnings),
	}
	for range f.All() {
		r.Steps++
	}
	return r
}

// showFaults writes what is wrong with a file.
func showFaults(a *cli.App, f *flowFile) error {
	for _, e := range f.wrong {
		if err := a.Say("%s", cli.Printable(e.Error())); err != nil {
			return err
		}
	}
	return nil
}

// WrongFlows says how many files of how many are wrong, and what else there is to say.
func WrongFlows(op string, wrong, of int, also string) error {
	return &cli.FlowsError{
		Text: fmt.Sprintf("%s: %s wrong%s%s", op, cli.Counted(wrong, "file is", "files are"),
			map[bool]string{true: fmt.Sprintf(", of %d", of)}[of > 1], also),
	}
}

func flowValidateCommand(a *cli.App) *cobra.Command {
	var registered bool
	cmd := &cobra.Command{
		Use:   "validate FILE…",
		Short: "Check flows without deploying them",
		Long: `Check flows: keys, step types, expressions, conditions, jumps, durations. All
errors of a file are shown, with line and column.

No server is needed. A step type that one file defines is known in the files after it;
--registered asks the server for others. A FILE of - is standard input.`,
		Example: `  drover flow validate order.yaml
  drover flow validate types/*.yaml flows/*.yaml --json`,
		Args: atLeastOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := readFlows(a, cmd, args)
			if err != nil {
				return err
			}
			if !registered {
				return validate(cmd.Context(), a, files, nil)
			}
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				return validate(ctx, a, files, cli.FlowStore(c))
			})
		},
	}
	cmd.Flags().BoolVar(&registered, "registered", false,
		"know the step types that are registered in the namespace")
	return cmd
}

func validate(ctx context.Context, a *cli.App, files []*flowFile, registered *store.Store) error {
	wrong, err := parseFlows(ctx, files, registered)
	if err != nil {
		return cli.FlowError("flow validate", err)
	}
	for _, f := range files {
		r := f.report()
		switch {
		case a.JSON:
			err = a.Document(r)
		case !r.Valid:
			err = showFaults(a, f)
		default:
			for _, w := range f.Warnings {
				if err := a.Say("warning: %s", cli.Printable(w.Error())); err != nil {
					return err
				}
			}
			err = a.Say("%s: %s, %s, version %s", cli.Word(f.name, 256), flowName(f.kind(), r.Name),
				cli.Counted(r.Steps, "step", "steps"), r.Version)
		}
		if err != nil {
			return err
		}
	}
	if wrong > 0 {
		return WrongFlows("flow validate", wrong, len(files), "")
	}
	return nil
}

// flowName shows a flow or step type as a word of a sentence.
func flowName(kind store.Kind, name string) string {
	if name == "" {
		return kind.String() + " without a name"
	}
	return kind.String() + " " + cli.Word(name, 256)
}

func flowSchemaCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON Schema of flows, for editors",
		Long: `Print a JSON Schema of flows. An editor that has it completes keys and step types
and shows what they mean; it checks less than "drover flow validate" does.`,
		Example: `  drover flow schema > flow.schema.json
  # and at the top of a flow:
  # yaml-language-server: $schema=flow.schema.json`,
		Args: cli.ArgNames(),
		RunE: func(*cobra.Command, []string) error {
			if a.JSON {
				return a.Document(json.RawMessage(model.Schema()))
			}
			_, err := a.Stdout.Write(model.Schema())
			return err
		},
	}
}

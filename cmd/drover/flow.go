package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider/flow/define"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/store"
	"github.com/droverhq/drover/schemas"
)

func flowCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flow",
		Short: "Validate, run, deploy and show flows",
		Long: `Validate, run, deploy and show flows: workflows that are written down in YAML. docs/guides/flows.md has the language.

A file with an id at its top defines a step type, any other a flow.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.running = false
			if len(args) == 0 {
				return fmt.Errorf("a command is missing")
			}
			return noCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(flowValidateCommand(a), flowDeployCommand(a), flowListCommand(a), flowShowCommand(a), flowGraphCommand(a), flowSchemaCommand(a), flowRunCommand(a))
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

// readFlow reads one file; - is standard input. One byte more than is allowed is enough for the parser to refuse it.
func (a *app) readFlow(cmd *cobra.Command, name string) (*flowFile, error) {
	if name == "-" {
		text, err := io.ReadAll(io.LimitReader(a.stdin, model.MaxSize+1))
		return &flowFile{name: "stdin", text: text}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, usage(cmd, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, model.MaxSize+1))
	if err != nil {
		return nil, usage(cmd, err)
	}
	return &flowFile{name: name, text: text}, nil
}

func (a *app) readFlows(cmd *cobra.Command, names []string) ([]*flowFile, error) {
	var all []*flowFile
	for _, name := range names {
		f, err := a.readFlow(cmd, name)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// parseFlows parses files in order. A step type of one file is known to those behind it, before what is registered; without a store
// nothing is.
func parseFlows(ctx context.Context, files []*flowFile, registered *store.Store) (wrong int, err error) {
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

// flowReport is what validate says of a file.
type flowReport struct {
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

func (f *flowFile) report() flowReport {
	if len(f.wrong) > 0 {
		return flowReport{File: f.name, Errors: faults(f.wrong)}
	}
	r := flowReport{File: f.name, Valid: true, Kind: string(f.kind()), Name: cmp.Or(f.ID, f.Name), Version: f.Version(), Warnings: faults(f.Warnings)}
	for range f.All() {
		r.Steps++
	}
	return r
}

// showFaults writes what is wrong with a file.
func (a *app) showFaults(f *flowFile) error {
	for _, e := range f.wrong {
		if err := a.say("%s", printable(e.Error())); err != nil {
			return err
		}
	}
	return nil
}

// printable keeps what came from a file from commanding the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f) {
			return r
		}
		return '�'
	}, s)
}

// flowsError says that files are wrong, which is no wrong usage. What is wrong with them has been shown.
type flowsError struct{ text, hint string }

func (e *flowsError) Error() string { return e.text }

func wrongFlows(op string, wrong, of int, also string) error {
	return &flowsError{text: fmt.Sprintf("%s: %s wrong%s%s", op, counted(wrong, "file is", "files are"), map[bool]string{true: fmt.Sprintf(", of %d", of)}[of > 1], also)}
}

func flowValidateCommand(a *app) *cobra.Command {
	var registered bool
	cmd := &cobra.Command{
		Use:   "validate FILE…",
		Short: "Check flows without deploying them",
		Long: `Check flows: keys, step types, expressions, conditions, jumps, durations. All errors of a file are shown, with line and column.

No server is needed. A step type that one file defines is known in the files behind it; --registered asks the server for others.
A FILE of - is standard input.`,
		Example: `  drover flow validate order.yaml
  drover flow validate types/*.yaml flows/*.yaml --json`,
		Args: atLeastOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := a.readFlows(cmd, args)
			if err != nil {
				return err
			}
			if !registered {
				return a.validate(cmd.Context(), files, nil)
			}
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error { return a.validate(ctx, files, flowStore(c)) })
		},
	}
	cmd.Flags().BoolVar(&registered, "registered", false, "know the step types that are registered in the namespace")
	return cmd
}

func flowStore(c *drover.Client) *store.Store {
	return store.Open(natsconn.Of(c), subject.Namespace(c.Namespace()))
}

func (a *app) validate(ctx context.Context, files []*flowFile, registered *store.Store) error {
	wrong, err := parseFlows(ctx, files, registered)
	if err != nil {
		return flowError("flow validate", err)
	}
	for _, f := range files {
		r := f.report()
		switch {
		case a.json:
			err = a.document(r)
		case !r.Valid:
			err = a.showFaults(f)
		default:
			for _, w := range f.Warnings {
				if err := a.say("warning: %s", printable(w.Error())); err != nil {
					return err
				}
			}
			err = a.say("%s: %s, %s, version %s", word(f.name, 256), flowName(f.kind(), r.Name), counted(r.Steps, "step", "steps"), r.Version)
		}
		if err != nil {
			return err
		}
	}
	if wrong > 0 {
		return wrongFlows("flow validate", wrong, len(files), "")
	}
	return nil
}

// flowName shows a flow or step type as a word of a sentence.
func flowName(kind store.Kind, name string) string {
	if name == "" {
		return kind.String() + " without a name"
	}
	return kind.String() + " " + word(name, 256)
}

// flowError says which command was refused, and what to do.
func flowError(op string, err error) error {
	if e, ok := errors.AsType[*schemas.Error](err); ok {
		return &drover.Error{Op: op, Code: e.Code, Hint: e.Hint, Err: e}
	}
	return err
}

func flowSchemaCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON Schema of flows, for editors",
		Long: `Print a JSON Schema of flows. An editor that has it completes keys and step types and shows what they mean; it checks less than
"drover flow validate" does.`,
		Example: `  drover flow schema > flow.schema.json
  # and at the top of a flow:
  # yaml-language-server: $schema=flow.schema.json`,
		Args: argNames(),
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.document(json.RawMessage(model.Schema()))
			}
			_, err := a.stdout.Write(model.Schema())
			return err
		},
	}
}

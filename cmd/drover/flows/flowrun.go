package flows

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/serve"
	"github.com/droverhq/drover/cmd/drover/workflows"
	"github.com/droverhq/drover/decider/flow/deployed"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

// flowRunFlags are those of flow run.
type flowRunFlags struct {
	with, inputs, answers []string
	id                    string
	wait                  bool
	worker                serve.WorkerFlags
}

func flowRunCommand(a *cli.App) *cobra.Command {
	f := &flowRunFlags{}
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a flow in this process, to try it out",
		Long: `Run a flow in this process: with a server in memory, a decider and a worker of its
own. Nothing is left over, and no server is needed.

The steps are shown on stderr as they run, the result on stdout; the exit code is 1 if the run did
not complete, and 4 if it had not ended when --timeout was over. A first interrupt ends it.

The input is a map: JSON, @FILE or - for standard input, or NAME=VALUE as often as needed, where
VALUE is JSON or else a text. Flows that the flow starts as children, and step types that it uses,
are named by --with.

The steps http, request, publish and load are done; shell only if --kinds names it. For each other
activity say what it returns: --activity charge='{"receipt":"r-1"}'. Nobody sends signals here, so
a wait for one lasts until its timeout.`,
		Example: `  drover flow run hello.yaml --input who=Ada --input times=3
  drover flow run order.yaml --with ship.yaml --input '{"amount": 12}' --activity charge='{"receipt": "r-1"}'
  drover flow run disk.yaml --kinds shell,http --timeout 1m`,
		Args: cli.ArgNames("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return flowRun(a, cmd, args[0], f) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVar(&f.inputs, "input", nil,
		"the run's input: NAME=VALUE, which may be repeated, or JSON, @FILE or -")
	fs.StringArrayVar(&f.with, "with", nil,
		"file of another flow or step type that it needs; may be repeated")
	fs.StringArrayVar(&f.answers, "activity", nil,
		"TYPE=JSON: what activities of a type return; may be repeated")
	fs.StringVar(&f.id, "id", "", "the workflow id (default a new ULID)")
	fs.StringSliceVar(&f.worker.Lists, "list", nil,
		"task list to take activities from, beside those that the steps name; may be repeated")
	f.worker.RegisterKinds(fs)
	fs.BoolVar(&f.wait, "wait", false, "wait for the end, as this command always does")
	return cmd
}

// flowRun checks what can be checked before anything begins.
func flowRun(a *cli.App, cmd *cobra.Command, file string, f *flowRunFlags) error {
	if fs := cmd.Flags(); fs.Changed("nats") || fs.Changed("context") {
		return cli.Usage(cmd, fmt.Errorf(
			"--nats or --context is given, but flow run has a server of its own: deploy the "+
				"flow and start it there"))
	}
	if err := cli.RefuseFlags(cmd, serve.OnlyExternal,
		"but flow run has a server of its own: leave it out"); err != nil {
		return err
	}
	if err := f.worker.ValidateKinds(cmd); err != nil {
		return err
	}
	input, err := runInput(a, cmd, f.inputs)
	if err != nil {
		return err
	}
	answers, err := answersOf(cmd, f.answers, f.worker.Kinds)
	if err != nil {
		return err
	}
	files, err := readFlows(a, cmd, append(slices.Clone(f.with), file))
	if err != nil {
		return err
	}
	if err := checkRun(cmd.Context(), a, files); err != nil {
		return err
	}
	f.worker.Lists, err = f.lists(files, answers)
	if err != nil {
		return err
	}
	return tryOut(a, cmd, files, f, input, answers)
}

// checkRun parses the files, the last of which is the flow that is run.
func checkRun(ctx context.Context, a *cli.App, files []*flowFile) error {
	const op = "flow run"
	wrong, err := parseFlows(ctx, files, nil)
	if err != nil {
		return cli.FlowError(op, err)
	}
	for _, f := range files {
		for _, e := range f.wrong { // stdout is for the result
			fmt.Fprintln(a.Stderr, cli.Printable(e.Error()))
		}
	}
	if wrong > 0 {
		return WrongFlows(op, wrong, len(files), ", so nothing was run")
	}
	seen := map[string]*flowFile{}
	for i, f := range files {
		if f.StepType && i == len(files)-1 {
			return &cli.FlowsError{
				Text: fmt.Sprintf("%s: %s defines the step type %s",
					op, cli.Word(f.name, 256), cli.Word(f.ID, 256)),
				Hint: "run a flow that uses it, with --with " + cli.Word(f.name, 256),
			}
		}
		if !f.StepType && f.Name == "" { // only here, where the name matters to nobody else
			base := filepath.Base(f.name)
			f.Name = cmp.Or(strings.TrimSuffix(base, filepath.Ext(base)), "flow")
		}
		name := flowName(f.kind(), cmp.Or(f.ID, f.Name))
		if first := seen[name]; first != nil && first.Version() != f.Version() {
			// one of them would never run
			return &cli.FlowsError{
				Text: fmt.Sprintf("%s: %s and %s both define %s, so nothing was run",
					op, cli.Word(first.name, 256), cli.Word(f.name, 256), name),
				Hint: "name one of them, or give the other one another name",
			}
		}
		seen[name] = f
	}
	return nil
}

// runInput makes one map of --input.
func runInput(a *cli.App, cmd *cobra.Command, given []string) (schemas.Payload, error) {
	if len(given) == 1 && (strings.HasPrefix(strings.TrimSpace(given[0]), "{") || given[0] == "-" ||
		strings.HasPrefix(given[0], "@")) {
		one := cli.InputFlag{Name: "input", Text: given[0]}
		return one.Read(cmd, a.Stdin)
	}
	values := map[string]json.RawMessage{}
	for _, g := range given {
		name, text, ok := strings.Cut(g, "=")
		switch _, twice := values[name]; {
		case !ok || name == "":
			return nil, cli.Usage(cmd,
				fmt.Errorf("--input %s: want NAME=VALUE, or alone JSON that is a map, @FILE or -",
					cli.Word(g, 100)))
		case twice:
			return nil, cli.Usage(cmd, fmt.Errorf("--input gives %s twice", cli.Word(name, 100)))
		}
		values[name] = valueOf(text)
	}
	if len(values) == 0 {
		return nil, nil
	}
	return schemas.JSONPayload(values)
}

// valueOf is JSON as it is, and anything else as a text.
func valueOf(text string) json.RawMessage {
	if raw := bytes.TrimSpace([]byte(text)); json.Valid(raw) {
		return raw
	}
	quoted, err := json.Marshal(text)
	if err != nil { // no text does that
		return json.RawMessage(`""`)
	}
	return quoted
}

// answersOf reads --activity.
func answersOf(cmd *cobra.Command, given, kinds []string) (map[string]schemas.Payload, error) {
	answers := map[string]schemas.Payload{}
	for _, g := range given {
		typ, text, ok := strings.Cut(g, "=")
		if !ok {
			return nil, cli.Usage(cmd,
				fmt.Errorf("--activity %s: want TYPE=JSON", cli.Word(g, 100)))
		}
		if err := schemas.ValidateID("--activity", typ); err != nil {
			return nil, cli.Usage(cmd,
				fmt.Errorf("--activity %s: %w: want TYPE=JSON", cli.Word(g, 100), err))
		}
		if slices.Contains(kinds, typ) || answers[typ] != nil {
			return nil, cli.Usage(cmd, fmt.Errorf(
				"--activity gives an answer for %s, which is done already: leave it out, or the kind",
				cli.Word(typ, 100)))
		}
		answers[typ] = schemas.Payload(valueOf(text))
	}
	return answers, nil
}

// lists are the task lists of all steps, and it refuses a flow with an activity that nobody does.
func (f *flowRunFlags) lists(
	files []*flowFile, answers map[string]schemas.Payload,
) ([]string, error) {
	lists := map[string]bool{deployed.DefaultList: true}
	for _, l := range f.worker.Lists {
		lists[l] = true
	}
	names := map[string]bool{}
	for _, file := range files {
		names[file.Name] = !file.StepType
	}
	for _, file := range files {
		for _, d := range append(slices.Collect(maps.Values(file.Types)), file.Definition) {
			for s := range d.All() {
				if child, ok := s.Inputs["workflow"].(string); s.Type == "child" && ok &&
					!strings.Contains(child, "${") && !names[child] {
					return nil, &cli.FlowsError{
						Text: fmt.Sprintf(
							"flow run: %s: step %s starts the workflow %s, which is not here",
							cli.Word(file.name, 256), s.Ref, cli.Word(child, 100)),
						Hint: "name its file: --with FILE",
					}
				}
				typ, list := asksFor(s)
				if list != "" && schemas.ValidateName("list", list) == nil {
					lists[list] = true
				}
				if typ == "" || slices.Contains(f.worker.Kinds, typ) || answers[typ] != nil {
					continue
				}
				e := &cli.FlowsError{
					Text: fmt.Sprintf(
						"flow run: %s: step %s runs the activity %s, which nobody does here",
						cli.Word(file.name, 256), s.Ref, cli.Word(typ, 100)),
					Hint: fmt.Sprintf("say what it returns: --activity %s=JSON",
						cli.Word(typ, 100)),
				}
				if slices.Contains(serve.AllKinds, typ) {
					e.Hint = "let the worker do it: --kinds " +
						strings.Join(append(slices.Clone(f.worker.Kinds), typ), ",")
				}
				return nil, e
			}
		}
	}
	return slices.Sorted(maps.Keys(lists)), nil
}

// asksFor tells the activity type and the list that a step asks for, as far as the text says them.
func asksFor(s *model.Step) (typ, list string) {
	switch s.Type {
	case "activity":
		typ, _ = s.Inputs["activity"].(string)
		list, _ = s.Inputs["list"].(string)
	case "http", "ssh", "shell", "container", "publish", "request", "load":
		typ = s.Type
	}
	if strings.Contains(typ, "${") {
		typ = ""
	}
	return typ, list
}

// tryOut runs the last file on a server that ends with it.
func tryOut(
	a *cli.App, cmd *cobra.Command, files []*flowFile, f *flowRunFlags, input schemas.Payload,
	answers map[string]schemas.Payload,
) error {
	log, err := a.Logger()
	if err != nil {
		return err
	}
	ctx, hurry, done := serve.OnSignals(cmd.Context())
	defer done()
	if d := a.Timeout.Value; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	began := false
	err = withServer(ctx, server.Options{
		Namespace: a.Namespace, OnlyNamespace: true,
		Roles: []string{server.RoleBroker, server.RoleTimers, server.RoleOps}, Partitions: 1,
		Node: "flow-run", Embedded: embedded.Options{DontListen: true}, DrainTimeout: time.Second,
		Logger: log, Hurry: hurry,
	}, func(ctx context.Context, c *drover.Client) error {
		s := cli.FlowStore(c)
		for _, file := range files {
			if _, err := s.Deploy(ctx, file.kind(), file.Definition); err != nil {
				return refusedFile("flow run "+file.name, err)
			}
		}
		return besides(ctx, tryWorkers(a, c, files[len(files)-1].Name, f, answers),
			func(ctx context.Context) error {
				since := time.Now()
				run, err := c.Start(ctx, files[len(files)-1].Name, input,
					&drover.StartOptions{ID: f.id})
				if err != nil {
					return err
				}
				began = true
				err = workflows.ShowOutcome(ctx, a, c, run, since)
				if e, ok := errors.AsType[*drover.Error](err); ok && e.Code == schemas.CodeTimeout {
					e.Hint = "it was given up with its server, and nothing of it is left: give it a longer --timeout"
				}
				return err
			})
	})
	if !began && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return &drover.Error{
			Op: "flow run", Code: schemas.CodeTimeout,
			Hint: "give it a longer --timeout: the server in this process takes a moment to begin",
			Err: fmt.Errorf("the flow had not begun when --timeout (%v) was over: %w",
				a.Timeout.Value, err),
		}
	}
	return err
}

var errWorkerEnded = errors.New("it ended by itself")

// besides runs fn while workers work; if these end first, with why they did.
func besides(
	ctx context.Context, workers []func(context.Context) error, fn func(context.Context) error,
) error {
	work, stop := context.WithCancel(ctx)
	during, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := serve.RunAll(work, workers...)
		if work.Err() == nil {
			cancel(fmt.Errorf("a worker: %w", cmp.Or(err, errWorkerEnded)))
		}
	}()
	defer func() { stop(); <-ended }()
	err := fn(during)
	if cause := context.Cause(during); err != nil && cause != nil && ctx.Err() == nil {
		return cause
	}
	return err
}

// tryWorkers are a decider that shows its steps, and a worker of activities.
func tryWorkers(
	a *cli.App, c *drover.Client, flow string, f *flowRunFlags, answers map[string]schemas.Payload,
) []func(context.Context) error {
	o := &deployed.Options{Namespace: c.Namespace(), DrainTimeout: -1, Every: 50 * time.Millisecond}
	if !a.JSON {
		o.Trace = newProgress(a.Stderr, flow).step
	}
	f.worker.Drain.Value = time.Millisecond
	w := f.worker.Worker(c)
	for typ, answer := range answers {
		activity.Register(w, typ,
			func(context.Context, schemas.Payload) (schemas.Payload, error) { return answer, nil })
	}
	return []func(context.Context) error{deployed.New(c, o).Run, w.Run}
}

// withServer runs fn against a server in this process, which ends with it.
func withServer(
	ctx context.Context, o server.Options, fn func(ctx context.Context, c *drover.Client) error,
) error {
	s, err := server.New(o)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(serving) }()
	defer func() { stop(); <-ended }()
	if _, err := s.Ready(ctx); err != nil {
		return err
	}
	conn, err := natsconn.Dial(ctx,
		natsconn.Options{InProcess: s, Name: "flow run", Logger: o.Logger})
	if err != nil {
		return err
	}
	defer conn.Close()
	c, err := drover.Connect(ctx, &drover.Options{
		Conn: conn.NATS(), Namespace: cmp.Or(o.Namespace, server.DefaultNamespace),
		Logger: o.Logger,
	})
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(ctx, c)
}

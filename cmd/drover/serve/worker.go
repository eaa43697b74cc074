package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/activity/kinds"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/memlimit"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

// AllKinds can be served without a program.
var (
	AllKinds     = append(slices.Clone(defaultKinds), kinds.TypeShell)
	defaultKinds = []string{kinds.TypeHTTP, kinds.TypeRequest, kinds.TypePublish, kinds.TypeLoad}
)

// WorkerFlags are those of worker.
type WorkerFlags struct {
	Lists, Kinds, hosts []string
	loads, shellEnv     []string
	flows               bool
	concurrency         int
	Drain               cli.DurationFlag
	identity            string
}

func WorkerCommand(a *cli.App) *cobra.Command {
	f := &WorkerFlags{Drain: cli.DurationFlag{Some: true}}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run built-in activities, such as HTTP calls, and deployed flows",
		Long: `Take activities of these types from task lists and do them; flows have steps of the
same names:

  http     {"method":"POST","url":"https://…","headers":{…},"body":…,"timeout":"5s","expect":[200]}
           gives {"status":200,"headers":{…},"body":…}; another status fails with http_status_404 and the like
  request  {"subject":"orders.check","body":…,"headers":{…},"timeout":"5s"} gives the reply of the micro service;
           without one it fails with no_responders, an error of the service with service_error_ and its code
  publish  {"subject":"orders.shipped","body":…,"headers":{…}} sends a message to whoever listens
  load     {"url":"https://…","charset":"utf-8"} gives a text; files are read below --load-dir alone
  shell    {"command":"df -h","env":{…},"output_max_size":100000}
           gives {"stdout":…,"stderr":…,"exit_code":0}. It is served only if --kinds names it:
           then whoever may start workflows may run commands as the user of this worker. A command
           sees PATH, its own env and the variables that --shell-env names, in an empty folder;
           with the activity its process group is killed

Each call carries the activity's idempotency key in the header Idempotency-Key, a command has it
in DROVER_IDEMPOTENCY_KEY. Calls are made at least once: schedule what must not be repeated with
notIdempotent.

The worker calls whatever workflows ask for, with its own network and NATS user: run it as
somebody who may do no harm, and name the hosts with --http-host.

With --flows it decides for the flows that are deployed in the namespace, as servers with the role
flows do; without --list that is all it does. Flows that are deployed later are run without a
restart. A workflow type is a flow or a program: if a program decides for a type of that name too,
runs fail.

SIGTERM and SIGINT stop it: it takes no more, lets what runs end within --drain-timeout and
reports it. A second signal cuts that short; what was cut is done again by another worker.`,
		Example: `  drover worker --list calls
  drover worker --flows
  drover worker --list main --kinds http,shell --shell-env HOME
  drover worker --list calls --kinds http --http-host api.example.com --http-host .internal.example.com`,
		Args: cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runWorker(a, cmd, f) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringSliceVar(&f.Lists, "list", nil,
		"task list to take activities from; may be repeated (required, but with --flows)")
	fs.BoolVar(&f.flows, "flows", false, "run the flows that are deployed")
	f.RegisterKinds(fs)
	fs.IntVar(&f.concurrency, "concurrency", 0, "activities at a time (default 100)")
	fs.Var(&f.Drain, "drain-timeout", "how long activities may go on after a signal (default 5m)")
	fs.StringVar(&f.identity, "identity", "",
		"name of this worker in histories (default host name and process id)")
	return cmd
}

// RegisterKinds adds the flags that say what is done without a program.
func (f *WorkerFlags) RegisterKinds(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.Kinds, "kinds", defaultKinds,
		"kinds to serve: "+strings.Join(AllKinds, ","))
	fs.StringSliceVar(&f.hosts, "http-host", nil,
		"host that http and load may call; \".example.com\" means all below it; may be repeated (default every host)")
	fs.StringSliceVar(&f.loads, "load-dir", nil,
		"folder of which load may read files; may be repeated (default none)")
	fs.StringSliceVar(&f.shellEnv, "shell-env", nil,
		"variable of this process that commands of shell get; may be repeated (default none)")
}

// WorkerReady is what worker prints when it begins.
type WorkerReady struct {
	Ready     bool     `json:"ready"`
	Namespace string   `json:"namespace"`
	Lists     []string `json:"lists"`
	Kinds     []string `json:"kinds"`
	Flows     bool     `json:"flows,omitempty"`
	Identity  string   `json:"identity"`
}

func (f *WorkerFlags) validate(cmd *cobra.Command) error {
	if err := cli.RefuseTimeout(cmd); err != nil {
		return err
	}
	if f.identity != "" {
		if err := schemas.ValidateID("--identity", f.identity); err != nil {
			return cli.Usage(cmd, err)
		}
	}
	if len(f.Lists) == 0 && !f.flows {
		return cli.Usage(cmd, fmt.Errorf(
			"--list is missing: name the task lists to take activities from, or run flows with --flows"))
	}
	if len(f.Lists) == 0 {
		for _, name := range []string{"kinds", "http-host", "load-dir", "shell-env", "concurrency"} {
			if cmd.Flags().Changed(name) {
				return cli.Usage(cmd, fmt.Errorf("--%s is given, which goes with --list", name))
			}
		}
		return nil
	}
	for i, list := range f.Lists {
		if err := schemas.ValidateName("--list", list); err != nil {
			return cli.Usage(cmd, err)
		}
		if slices.Contains(f.Lists[:i], list) {
			return cli.Usage(cmd, fmt.Errorf("--list names %q twice: name each list once", list))
		}
	}
	if f.concurrency < 0 || f.concurrency > 0 && f.concurrency < len(f.Lists) {
		return cli.Usage(cmd,
			fmt.Errorf("--concurrency is %d for %d lists: use at least one for each list",
				f.concurrency, len(f.Lists)))
	}
	return f.ValidateKinds(cmd)
}

// ValidateKinds judges the flags of kinds.
func (f *WorkerFlags) ValidateKinds(cmd *cobra.Command) error {
	for i, k := range f.Kinds {
		if !slices.Contains(AllKinds, k) {
			return cli.Usage(cmd,
				fmt.Errorf("--kinds names %q: use some of %s", k, strings.Join(AllKinds, ",")))
		}
		if slices.Contains(f.Kinds[:i], k) {
			return cli.Usage(cmd, fmt.Errorf("--kinds names %q twice: name each kind once", k))
		}
	}
	for _, flag := range []struct {
		name  string
		kinds []string
	}{
		{"http-host", []string{kinds.TypeHTTP, kinds.TypeLoad}},
		{"load-dir", []string{kinds.TypeLoad}},
		{"shell-env", []string{kinds.TypeShell}},
	} {
		served := slices.ContainsFunc(flag.kinds,
			func(k string) bool { return slices.Contains(f.Kinds, k) })
		if cmd.Flags().Changed(flag.name) && !served {
			return cli.Usage(cmd, fmt.Errorf("--%s is given, which goes with the kind %s",
				flag.name, strings.Join(flag.kinds, " or ")))
		}
	}
	return f.validatePlaces(cmd)
}

// validatePlaces refuses hosts and folders that no call could ever reach: each activity would fail
// instead.
func (f *WorkerFlags) validatePlaces(cmd *cobra.Command) error {
	for _, host := range f.hosts {
		if ip := net.ParseIP(host); ip == nil && strings.Trim(host, ".") == "" ||
			ip == nil && strings.ContainsAny(host, ":/*?@ []") {
			return cli.Usage(cmd, fmt.Errorf(
				"--http-host %q: want the name of a host alone, without scheme and port; %q means all below it",
				host, ".example.com"))
		}
	}
	for _, dir := range f.loads {
		info, err := os.Stat(dir)
		if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathErr.Err
		} else if err == nil && !info.IsDir() {
			err = errors.New("it is no folder")
		}
		if err != nil {
			return cli.Usage(cmd, fmt.Errorf("--load-dir %s: %w", dir, err))
		}
	}
	return nil
}

// runWorker serves activities until a signal.
func runWorker(a *cli.App, cmd *cobra.Command, f *WorkerFlags) error {
	if err := f.validate(cmd); err != nil {
		return err
	}
	a.Service, a.DefaultLevel = true, logrus.InfoLevel
	memlimit.Ballast()
	log, err := a.Logger()
	if err != nil {
		return err
	}
	cli.Widen(log)
	ctx, hurry, done := OnSignals(cmd.Context())
	defer done()
	c, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	w := f.Worker(c)
	ready := WorkerReady{
		Ready: true, Namespace: c.Namespace(), Lists: f.Lists, Kinds: f.Kinds, Flows: f.flows,
		Identity: w.Identity(),
	}
	var runs []func(context.Context) error
	if len(f.Lists) > 0 {
		runs = append(runs, w.Run)
	} else {
		ready.Kinds = nil
	}
	if f.flows {
		deciders, err := f.deciders(c, a, w.Identity())
		if err != nil {
			return err
		}
		runs = append(runs, deciders.Run)
	}
	if err := workerReady(a, ready); err != nil {
		return err
	}
	return runUntilHurry(ctx, hurry,
		func(ctx context.Context) error { return RunAll(ctx, runs...) })
}

func workerReady(a *cli.App, r WorkerReady) error {
	if a.JSON {
		return a.Document(r)
	}
	var does []string
	if len(r.Lists) > 0 {
		does = append(does, fmt.Sprintf("kinds %s on lists %s of namespace %s",
			strings.Join(r.Kinds, "+"), strings.Join(r.Lists, "+"), r.Namespace))
	}
	if r.Flows {
		does = append(does, "flows of namespace "+r.Namespace)
	}
	_, err := fmt.Fprintf(a.Stderr, "drover worker is ready: %s, as %s\n",
		strings.Join(does, " and "), r.Identity)
	return err
}

// Worker makes the activity worker that the flags describe.
func (f *WorkerFlags) Worker(c *drover.Client) *activity.Worker {
	w := c.Activities(&activity.Options{
		Lists: f.Lists, Concurrency: f.concurrency, DrainTimeout: f.Drain.Value,
		Identity: f.identity,
	})
	calls := &kinds.HTTPOptions{}
	if len(f.hosts) > 0 {
		calls.Allow = kinds.AllowHosts(f.hosts...)
	}
	for _, k := range slices.Compact(slices.Sorted(slices.Values(f.Kinds))) {
		switch k {
		case kinds.TypeHTTP:
			activity.Register(w, k, kinds.HTTP(calls))
		case kinds.TypeRequest:
			activity.Register(w, k, kinds.Request(c, nil))
		case kinds.TypePublish:
			activity.Register(w, k, kinds.Publish(c, nil))
		case kinds.TypeLoad:
			activity.Register(w, k, kinds.Load(&kinds.LoadOptions{HTTP: *calls, Dirs: f.loads}))
		case kinds.TypeShell:
			activity.Register(w, k, kinds.Shell(&kinds.ShellOptions{Env: f.environment()}))
		}
	}
	return w
}

// environment are the variables of this process that commands get.
func (f *WorkerFlags) environment() (env []string) {
	for _, name := range f.shellEnv {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// runUntilHurry runs until run returns or hurry is closed. In the second case the process ends at
// once, and the server gives the tasks to others when their leases are over.
func runUntilHurry(
	ctx context.Context, hurry <-chan struct{}, run func(context.Context) error,
) error {
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-hurry:
		return server.ErrCutShort
	}
}

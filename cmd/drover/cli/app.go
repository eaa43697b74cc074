package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logs"
)

// App is one invocation of the binary: its streams and its global flags.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	Namespace, NATS string
	User, Password  string
	dialing
	context      contextFlag
	Timeout      DurationFlag
	output       outputFlag
	logLevel     string
	DefaultLevel logrus.Level
	Service      bool // the command is a server or a worker

	JSON      bool // documents instead of tables: JSON, or YAML if yaml is set
	yaml      bool
	documents int // written to stdout
	Columns   int // how wide stdout is; 0 to ask the terminal, if it is one

	where   []string // the flags that say where to connect, as words
	Running bool     // the arguments were understood: what fails now is not wrong usage

	groups func(*App) []CommandGroup // makes the commands
}

// dialing is how the first connection to NATS is made, besides its address and its user.
type dialing struct {
	creds, nkey            string
	tlsCA, tlsCert, tlsKey string
	retryConnect           bool
}

// CommandGroup is a part of the list of commands that help shows.
type CommandGroup struct {
	ID, Title string
	Commands  []*cobra.Command
}

// GroupOther is the group of the commands that cobra brings.
const GroupOther = "other"

// NewApp makes an invocation with these streams. Groups makes all commands.
func NewApp(stdin io.Reader, stdout, stderr io.Writer, groups func(*App) []CommandGroup) *App {
	return &App{
		Stdin: stdin, Stdout: stdout, Stderr: stderr, DefaultLevel: logrus.WarnLevel,
		groups: groups,
	}
}

// Run executes one command line and returns the exit code. It touches nothing of the process but
// its environment, so that tests call it as it is.
func Run(
	ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer,
	groups func(*App) []CommandGroup,
) int {
	guarded := &guard{w: stderr}
	defer guarded.close()
	return NewApp(stdin, stdout, guarded, groups).Execute(ctx, args)
}

// Execute is run for an app that is made already.
func (a *App) Execute(ctx context.Context, args []string) int {
	root := a.Root()
	root.SetArgs(args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	a.completions(root) // after the streams: cobra's command keeps the one it finds
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitDone
	}
	if !a.Running {
		// The flags may not have been read to their end.
		a.JSON, a.yaml = documentsWanted(args)
		err = Usage(cmd, plainly(cmd, err))
	}
	if !errors.Is(err, ErrNotFirst) { // which has been said
		a.report(err)
	}
	return ExitCode(err)
}

// Root is the tree of all commands.
func (a *App) Root() *cobra.Command {
	root := GroupCommand(a, "drover", "Durable workflows on NATS JetStream",
		`Drover runs durable workflows on NATS JetStream and nothing else.

Begin with "drover dev" in one terminal, and start workflows from another. "drover init NAME" makes
a Go module with a workflow.

Exit codes: 0 done, 1 the workflow failed or the request was refused, 2 wrong usage, 3 no
connection, 4 timed out, 5 runs are parked (audit), 6 somebody else was first (once), 75 recycled
(server --recycle-exit), 130 interrupted while it waited.`)
	root.Version, root.SilenceErrors, root.SilenceUsage = versionText(), true, true
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.chooseOutput(cmd.Flags()); err != nil {
			return err
		}
		if err := refuseEmpty(cmd.Flags()); err != nil {
			return err
		}
		if err := subject.ValidateNamespace(a.Namespace); err != nil {
			return fmt.Errorf("--namespace: %s",
				strings.TrimPrefix(err.Error(), subject.ErrInvalidID.Error()+": "))
		}
		a.noteWhere(cmd.Flags())
		a.Running = true
		return nil
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages",
		".FlagUsagesWrapped 80"))
	a.globals(root)
	for _, g := range a.groups(a) {
		root.AddGroup(&cobra.Group{ID: g.ID, Title: g.Title})
		for _, cmd := range g.Commands {
			cmd.GroupID = g.ID
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID(GroupOther)
	root.SetCompletionCommandGroupID(GroupOther)
	return root
}

func (a *App) globals(root *cobra.Command) {
	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVarP(&a.Namespace, "namespace", "n", "default", "the namespace to talk to")
	f.StringVarP(&a.NATS, "nats", "s", "",
		"address of NATS (default that of the context, else $NATS_URL, else nats://127.0.0.1:4222)")
	f.Var(&a.context, "context",
		"context of the nats command line that says where and as whom to connect (default $NATS_CONTEXT)")
	f.VarP(&a.output, "output", "o",
		"how to print: table, json or yaml; lists are one document a line, or documents with "+
			"\"---\" between them (default table)")
	f.BoolVar(&a.JSON, "json", false, "short for --output json")
	f.Var(&a.Timeout, "timeout",
		"give up after this time (default: as long as it takes, but 15s without any answer)")
	f.StringVar(&a.creds, "creds", "", "file with NATS credentials")
	f.StringVar(&a.nkey, "nkey", "", "file with an NKEY seed")
	f.StringVar(&a.User, "user", "", "NATS user")
	f.StringVar(&a.Password, "password", "", "NATS password")
	f.StringVar(&a.tlsCA, "tlsca", "", "file with the CA certificates to trust")
	f.StringVar(&a.tlsCert, "tlscert", "", "file with the client certificate")
	f.StringVar(&a.tlsKey, "tlskey", "", "file with the key of the client certificate")
	f.BoolVar(&a.retryConnect, "retry-connect", false,
		"while no NATS server can be reached, try again, up to --timeout (default: fail at once)")
	f.StringVar(&a.logLevel, "log-level", "",
		"what to log on stderr: error, warn, info or debug (default warn; info for server and worker)")
}

// Connect dials as the global flags say. The caller closes the client.
func (a *App) Connect(ctx context.Context) (*drover.Client, error) {
	log, err := a.Logger()
	if err != nil {
		return nil, err
	}
	o, err := a.DialOptions()
	if err != nil {
		return nil, err
	}
	return drover.Connect(ctx, &drover.Options{
		URL: o.URL, Namespace: a.Namespace, Logger: log, CredsFile: o.CredsFile,
		NKeyFile: o.NKeyFile, User: o.User, Password: o.Password, Token: o.Token, CAFile: o.CAFile,
		CertFile: o.CertFile, KeyFile: o.KeyFile, InboxPrefix: o.InboxPrefix,
		APIPrefix: o.APIPrefix, RetryOnFailedConnect: o.RetryOnFailedConnect,
		NamespaceMustExist: true,
	})
}

// Client runs fn with a connection and, with --timeout, a deadline.
func (a *App) Client(
	cmd *cobra.Command, fn func(ctx context.Context, c *drover.Client) error,
) error {
	ctx := cmd.Context()
	if d := a.Timeout.Value; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	c, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(ctx, c)
}

// Logger writes lines to stderr. They are JSON when the rest is, and those of servers and workers
// when nobody reads along.
func (a *App) Logger() (*logrus.Logger, error) {
	log := logrus.New()
	log.SetOutput(a.Stderr)
	log.SetLevel(a.DefaultLevel)
	if a.logLevel != "" {
		level, err := logrus.ParseLevel(a.logLevel)
		if err != nil || level < logrus.ErrorLevel || level > logrus.DebugLevel {
			return nil, Usage(nil,
				fmt.Errorf("--log-level is %q: use error, warn, info or debug", a.logLevel))
		}
		log.SetLevel(level)
	}
	terminal := isTerminal(a.Stderr)
	if a.JSON && !a.yaml || a.Service && !terminal {
		log.SetFormatter(logs.JSON())
	} else {
		log.SetFormatter(logs.Text(terminal))
	}
	return log, nil
}

// isTerminal tells whether a person reads along.
func isTerminal(w io.Writer) bool {
	if g, ok := w.(*guard); ok {
		w = g.w
	}
	return logs.Terminal(w)
}

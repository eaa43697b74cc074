package main

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

// app is one invocation of the binary: its streams and its global flags.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	namespace, nats        string
	creds, nkey            string
	user, password         string
	tlsCA, tlsCert, tlsKey string
	retryConnect           bool
	context                contextFlag
	timeout                durationFlag
	output                 outputFlag
	logLevel               string
	defaultLevel           logrus.Level
	service                bool // the command is a server or a worker

	json      bool // documents instead of tables: JSON, or YAML if yaml is set
	yaml      bool
	documents int // written to stdout
	columns   int // how wide stdout is; 0 to ask the terminal, if it is one

	where   []string // the flags that say where to connect, as words
	running bool     // the arguments were understood: what fails now is not wrong usage

	groups func(*app) []commandGroup // makes the commands
}

// commandGroup is a part of the list of commands that help shows.
type commandGroup struct {
	id, title string
	commands  []*cobra.Command
}

// groupOther is the group of the commands that cobra brings.
const groupOther = "other"

// newApp makes an invocation with these streams. Groups makes all commands.
func newApp(stdin io.Reader, stdout, stderr io.Writer, groups func(*app) []commandGroup) *app {
	return &app{stdin: stdin, stdout: stdout, stderr: stderr, defaultLevel: logrus.WarnLevel, groups: groups}
}

// run executes one command line and returns the exit code. It touches nothing of the process but its
// environment, so that tests call it as it is.
func run(
	ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, groups func(*app) []commandGroup,
) int {
	guarded := &guard{w: stderr}
	defer guarded.close()
	return newApp(stdin, stdout, guarded, groups).execute(ctx, args)
}

// execute is run for an app that is made already.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	a.completions(root) // behind the streams: cobra's command keeps the one it finds
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	if !a.running {
		// The flags may not have been read to their end.
		a.json, a.yaml = documentsWanted(args)
		err = usage(cmd, plainly(cmd, err))
	}
	if !errors.Is(err, errNotFirst) { // which has been said
		a.report(err)
	}
	return exitCode(err)
}

// root is the tree of all commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "drover",
		Short: "Durable workflows on NATS JetStream",
		Long: `Drover runs durable workflows on NATS JetStream and nothing else.

Begin with "drover dev" in one terminal, and start workflows from another.

Exit codes: 0 done, 1 the workflow failed or the request was refused, 2 wrong usage, 3 no connection, 4 timed out,
5 runs are parked (audit), 6 somebody else was first (once), 75 recycled (server --recycle-exit),
130 interrupted while it waited.`,
		Version:       versionText(),
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.chooseOutput(cmd.Flags()); err != nil {
				return err
			}
			if err := refuseEmpty(cmd.Flags()); err != nil {
				return err
			}
			if err := subject.ValidateNamespace(a.namespace); err != nil {
				return fmt.Errorf("--namespace: %s", strings.TrimPrefix(err.Error(), subject.ErrInvalidID.Error()+": "))
			}
			a.noteWhere(cmd.Flags())
			a.running = true
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			a.running = false
			if len(args) == 0 {
				return fmt.Errorf("a command is missing")
			}
			return noCommand(cmd, args[0])
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	a.globals(root)
	for _, g := range a.groups(a) {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	return root
}

func (a *app) globals(root *cobra.Command) {
	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVarP(&a.namespace, "namespace", "n", "default", "the namespace to talk to")
	f.StringVarP(&a.nats, "nats", "s", "", "address of NATS (default that of the context, else $NATS_URL, else nats://127.0.0.1:4222)")
	f.Var(&a.context, "context", "context of the nats command line that says where and as whom to connect (default $NATS_CONTEXT)")
	f.VarP(&a.output, "output", "o", "how to print: table, json or yaml; lists are one document a line, or documents with \"---\" between them (default table)")
	f.BoolVar(&a.json, "json", false, "short for --output json")
	f.Var(&a.timeout, "timeout", "give up after this time (default: as long as it takes, but 15s without any answer)")
	f.StringVar(&a.creds, "creds", "", "file with NATS credentials")
	f.StringVar(&a.nkey, "nkey", "", "file with an NKEY seed")
	f.StringVar(&a.user, "user", "", "NATS user")
	f.StringVar(&a.password, "password", "", "NATS password")
	f.StringVar(&a.tlsCA, "tlsca", "", "file with the CA certificates to trust")
	f.StringVar(&a.tlsCert, "tlscert", "", "file with the client certificate")
	f.StringVar(&a.tlsKey, "tlskey", "", "file with the key of the client certificate")
	f.BoolVar(&a.retryConnect, "retry-connect", false, "while no NATS server can be reached, try again, up to --timeout (default: fail at once)")
	f.StringVar(&a.logLevel, "log-level", "", "what to log on stderr: error, warn, info or debug (default warn; info for server and worker)")
}

// connect dials as the global flags say. The caller closes the client.
func (a *app) connect(ctx context.Context) (*drover.Client, error) {
	log, err := a.logger()
	if err != nil {
		return nil, err
	}
	o, err := a.dialOptions()
	if err != nil {
		return nil, err
	}
	return drover.Connect(ctx, &drover.Options{
		URL: o.URL, Namespace: a.namespace, Logger: log, CredsFile: o.CredsFile, NKeyFile: o.NKeyFile,
		User: o.User, Password: o.Password, Token: o.Token, CAFile: o.CAFile, CertFile: o.CertFile, KeyFile: o.KeyFile,
		InboxPrefix: o.InboxPrefix, APIPrefix: o.APIPrefix, RetryOnFailedConnect: o.RetryOnFailedConnect, NamespaceMustExist: true,
	})
}

// client runs fn with a connection and, with --timeout, a deadline.
func (a *app) client(cmd *cobra.Command, fn func(ctx context.Context, c *drover.Client) error) error {
	ctx := cmd.Context()
	if d := a.timeout.value; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(ctx, c)
}

// logger writes lines to stderr. They are JSON when the rest is, and those of servers and workers when nobody reads along.
func (a *app) logger() (*logrus.Logger, error) {
	log := logrus.New()
	log.SetOutput(a.stderr)
	log.SetLevel(a.defaultLevel)
	if a.logLevel != "" {
		level, err := logrus.ParseLevel(a.logLevel)
		if err != nil || level < logrus.ErrorLevel || level > logrus.DebugLevel {
			return nil, usage(nil, fmt.Errorf("--log-level is %q: use error, warn, info or debug", a.logLevel))
		}
		log.SetLevel(level)
	}
	terminal := isTerminal(a.stderr)
	if a.json && !a.yaml || a.service && !terminal {
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

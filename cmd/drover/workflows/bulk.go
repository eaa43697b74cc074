package workflows

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/logs"
	"github.com/droverhq/drover/ops/bulk"
	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// bulkSamples is how many runs a dry run shows.
const bulkSamples = 20

// bulkWait is how long the index may take to read what was written before a command: longer than for
// a list, since something rests on it.
const bulkWait = 10 * time.Second

func BulkCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bulk",
		Short: "Cancel, terminate, signal, pause, resume, replay or delete all that match",
		Long: `Do one thing to all workflows that a query finds. The query is asked once, at the
beginning: what starts later is not acted on. A job does it, which is a workflow of its own: it
goes on after crashes, "drover bulk show JOB" tells how far it is, and "drover cancel JOB" ends it.

Each action takes a QUERY as "drover list" does, and --dry-run, which counts and does nothing.`,
		Example: `  drover bulk cancel "type = 'order' AND started < now-7d" --dry-run
  drover bulk replay "status = 'failed' AND closed > now-1h" --reason "the bank is back" --yes
  drover bulk show bulk-01KBE5C2A1Q8ZJ7N3D4M6P9RST`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("the action is missing: cancel, terminate, signal, pause, " +
					"resume, replay, delete; or show, rate")
			}
			return cli.NoCommand(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	for _, act := range []struct {
		action ops.BulkAction
		short  string
	}{
		{ops.BulkCancel, "Ask all that match to end"},
		{ops.BulkTerminate, "End all that match, without asking"},
		{ops.BulkSignal, "Send a signal to all that match"},
		{ops.BulkPause, "Stop asking the deciders of all that match"},
		{ops.BulkResume, "Undo the pause of all that match"},
		{ops.BulkReplay, "Run all again that match, have ended, and are the latest of their id"},
		{ops.BulkDelete, "Purge all that match and have closed"},
	} {
		cmd.AddCommand(bulkAction(a, act.action, act.short))
	}
	cmd.AddCommand(bulkShow(a), bulkRate(a))
	return cmd
}

// bulkFlags are those of an action.
type bulkFlags struct {
	action           ops.BulkAction
	o                drover.BulkOptions
	dryRun, yes, all bool
	input            cli.InputFlag
}

func bulkAction(a *cli.App, action ops.BulkAction, short string) *cobra.Command {
	f := &bulkFlags{action: action}
	cmd := &cobra.Command{
		Use: string(action) + " QUERY", Short: short, Args: cli.ArgNames("QUERY"),
		Long: short + `. QUERY is as of "drover list": children are left out unless it names them, or
--all is given. On a terminal it tells how many that are and asks; elsewhere --yes is needed.`,
	}
	if action == ops.BulkSignal {
		cmd.Use, cmd.Args = "signal QUERY NAME", cli.ArgNames("QUERY", "NAME")
		f.input.RegisterJSON(cmd, "the signal's input")
	}
	cmd.PreRunE = func(cmd *cobra.Command, args []string) (err error) {
		if action == ops.BulkSignal {
			f.o.Signal = args[1]
			body, err := f.input.Read(cmd, a.Stdin)
			if err != nil {
				return err
			}
			if body != nil {
				f.o.Input = body
			}
		}
		return f.check(a, cmd, args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
			return f.run(ctx, a, c, cmd, args[0])
		})
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.dryRun, "dry-run", false, "count what matches, show some, and do nothing")
	fs.BoolVar(&f.yes, "yes", false, "do not ask")
	fs.BoolVar(&f.all, "all", false, "children, too")
	fs.IntVar(&f.o.Rate, "rate", ops.DefaultBulkRate, "how many a second")
	fs.StringVar(&f.o.Reason, "reason", "", "why, for the histories")
	if action == ops.BulkReplay {
		fs.StringVar(&f.o.From, "from", "",
			"where to begin: start, last, end, or a step by its id or index (default end)")
	}
	return cmd
}

// check comes before a connection is made.
func (f *bulkFlags) check(a *cli.App, cmd *cobra.Command, text string) error {
	q, err := query.Parse(text, time.Now())
	switch {
	case err != nil:
		return cli.Usage(cmd, fmt.Errorf("the query cannot be read: %w", err))
	case strings.TrimSpace(text) == "":
		return cli.Usage(cmd, errors.New("the query is empty: say which are meant; "+
			"\"status = 'open'\" are all that are open"))
	case f.o.Rate < 1 || f.o.Rate > ops.MaxBulkRate:
		return cli.Usage(cmd, fmt.Errorf("--rate is %d: use 1 to %d", f.o.Rate, ops.MaxBulkRate))
	case !f.dryRun && !f.yes && !asks(a.Stdin):
		return cli.Usage(cmd, errors.New("nobody can be asked here: look first with --dry-run, "+
			"then say --yes"))
	}
	if !f.all && !namesRuns(q.Where) {
		f.o.Filter = "parent IS NULL"
	}
	return nil
}

// asks tells whether a person types.
func asks(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	return ok && logs.Terminal(f)
}

func (f *bulkFlags) run(
	ctx context.Context, a *cli.App, c *drover.Client, cmd *cobra.Command, text string,
) error {
	if f.dryRun || !f.yes {
		found, err := f.look(ctx, c, text)
		if err != nil {
			return err
		}
		if f.dryRun {
			if a.JSON {
				return a.Document(found)
			}
			_, err := a.Stdout.Write(found.text())
			return err
		}
		fmt.Fprintf(a.Stderr, "%s %s? [y/N] ", f.action,
			cli.Counted(found.Runs, "run", "runs"))
		if !agreed(a.Stdin) {
			return cli.Usage(cmd, errors.New("nothing was done"))
		}
	}
	job, err := c.Bulk(ctx, f.action, text, &f.o)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.Document(struct {
			Job string `json:"job"`
			Run string `json:"run"`
		}{job.ID, job.RunID})
	}
	return a.Say("%s begins; how far it is: drover bulk show %s", job.ID, job.ID)
}

// agreed reads the answer to a question.
func agreed(stdin io.Reader) bool {
	line, _ := bufio.NewReader(io.LimitReader(stdin, 64)).ReadString('\n')
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(line)))
}

// BulkFound is what a dry run tells.
type BulkFound struct {
	Action ops.BulkAction `json:"action"`
	Runs   int            `json:"runs"`
	// Groups are the largest first, Samples the first runs in the order of the query.
	Groups  []BulkGroup    `json:"groups"`
	Samples []ops.FoundRun `json:"samples"`
}

// BulkGroup is how many runs have the same type and status.
type BulkGroup struct {
	Type   string         `json:"type"`
	Status schemas.Status `json:"status"`
	Runs   int            `json:"runs"`
}

// look counts what a job would find.
func (f *bulkFlags) look(
	ctx context.Context, c *drover.Client, text string,
) (*BulkFound, error) {
	found := &BulkFound{Action: f.action, Groups: []BulkGroup{}, Samples: []ops.FoundRun{}}
	counts := map[BulkGroup]int{}
	o := &drover.QueryOptions{Filter: bulk.Filter(f.action, f.o.Filter), Wait: bulkWait}
	for r, err := range c.Query(ctx, text, o) {
		if err != nil {
			return nil, err
		}
		if found.Runs++; found.Runs <= bulkSamples {
			found.Samples = append(found.Samples, r)
		}
		counts[BulkGroup{Type: r.Type, Status: r.Status}]++
	}
	for g, n := range counts {
		g.Runs = n
		found.Groups = append(found.Groups, g)
	}
	slices.SortFunc(found.Groups, func(x, y BulkGroup) int {
		return cmp.Or(y.Runs-x.Runs, cmp.Compare(x.Type, y.Type), cmp.Compare(x.Status, y.Status))
	})
	return found, nil
}

// text lays it out for people.
func (f *BulkFound) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "would %s %s\n", f.Action, cli.Counted(f.Runs, "run", "runs"))
	if f.Runs == 0 {
		return b.Bytes()
	}
	t := tabwriter.NewWriter(&b, 2, 8, 2, ' ', 0)
	fmt.Fprintln(t, "\nRUNS\tTYPE\tSTATUS")
	for _, g := range f.Groups {
		fmt.Fprintf(t, "%d\t%s\t%s\n", g.Runs, cli.Word(g.Type, 40), g.Status)
	}
	t.Flush()
	fmt.Fprintln(t, "\nID\tRUN\tTYPE\tSTATUS\tSTARTED")
	for _, r := range f.Samples {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", cli.Word(r.WorkflowID, 40), r.Run,
			cli.Word(r.Type, 40), r.Status, cli.When(r.StartedAt))
	}
	t.Flush()
	if f.Runs > len(f.Samples) {
		fmt.Fprintf(&b, "and %d more\n", f.Runs-len(f.Samples))
	}
	return b.Bytes()
}

func bulkShow(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show JOB",
		Short: "Show how far a job is, and what it was refused",
		Long: `Show how far a job is: runs that were acted on, that needed nothing, that were
refused, that are left. "drover result JOB" waits for its end.`,
		Args: cli.ArgNames("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				d, err := c.Run(args[0], "").Describe(ctx)
				if err != nil {
					return err
				}
				j, err := readJob(d)
				if err != nil {
					return err
				}
				if a.JSON {
					return a.Document(j)
				}
				_, err = a.Stdout.Write(j.text())
				return err
			})
		},
	}
}

// BulkJob is a job as it is shown.
type BulkJob struct {
	Job     string            `json:"job"`
	Run     string            `json:"run"`
	Status  schemas.Status    `json:"status"`
	Started schemas.Timestamp `json:"startedAt"`
	Closed  schemas.Timestamp `json:"closedAt,omitempty"`
	Query   string            `json:"query"`
	Filter  string            `json:"filter,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	State   ops.BulkState     `json:"state"`
}

func readJob(d *schemas.DescribeResponse) (*BulkJob, error) {
	e := d.Execution
	if e.Type != ops.TypeBulk {
		return nil, schemas.Errorf(schemas.CodeInvalid,
			"%s is a workflow of type %s, and no bulk job", e.WorkflowID, e.Type)
	}
	var in ops.BulkRequest
	if err := json.Unmarshal(d.Input, &in); err != nil {
		return nil, fmt.Errorf("the input of the job: %w", err)
	}
	j := &BulkJob{
		Job: e.WorkflowID, Run: e.Run, Status: e.Status, Started: e.StartedAt, Closed: e.ClosedAt,
		Query: in.Query, Filter: in.Filter, Reason: in.Reason,
		State: ops.BulkState{V: schemas.Version, Action: in.Action, Rate: in.Rate},
	}
	if len(d.LatestContext) > 0 {
		if err := json.Unmarshal(d.LatestContext, &j.State); err != nil {
			return nil, fmt.Errorf("the state of the job: %w", err)
		}
	}
	return j, nil
}

func (j *BulkJob) text() []byte {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 2, 8, 2, ' ', 0)
	field := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	field("job", "%s, %s", cli.Word(j.Job, 256), j.Status)
	field("does", "%s: %s", j.State.Action, cli.Sentence(j.Query))
	if j.Reason != "" {
		field("reason", "%s", cli.Sentence(j.Reason))
	}
	field("started", "%s", cli.When(j.Started))
	if j.Closed != 0 {
		field("closed", "%s", cli.When(j.Closed))
	}
	if !j.State.Found {
		field("runs", "not looked for yet")
		t.Flush()
		return b.Bytes()
	}
	s := &j.State
	field("runs", "%d", s.Runs)
	field("done", "%d", s.Done)
	field("nothing to do", "%d", s.Nothing)
	field("refused", "%d", s.Refused)
	if !j.Status.Closed() {
		field("left", "%d, at %d a second", s.Left, s.Rate)
	} else if s.Left > 0 {
		field("left", "%d", s.Left)
	}
	t.Flush()
	for _, c := range s.Codes {
		fmt.Fprintf(&b, "%d refused with %s\n", c.Count, c.Code)
	}
	for _, r := range s.Refusals {
		fmt.Fprintf(&b, "  %s run %s: %s\n", cli.Word(r.WorkflowID, 256), r.Run,
			cli.Sentence(r.Message))
	}
	return b.Bytes()
}

func bulkRate(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "rate JOB NUMBER",
		Short: "Change how many runs a second a job acts on",
		Args:  cli.ArgNames("JOB", "NUMBER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var n int
			err := json.Unmarshal([]byte(args[1]), &n)
			if err != nil || n < 1 || n > ops.MaxBulkRate {
				return cli.Usage(cmd, fmt.Errorf("NUMBER is %q: use 1 to %d", args[1],
					ops.MaxBulkRate))
			}
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				if err := c.Run(args[0], "").Signal(ctx, ops.SignalRate, n); err != nil {
					return err
				}
				if a.JSON {
					return a.Document(struct {
						Job  string `json:"job"`
						Rate int    `json:"rate"`
					}{args[0], n})
				}
				return a.Say("%s acts on %d a second, within a few seconds",
					cli.Word(args[0], 256), n)
			})
		},
	}
}

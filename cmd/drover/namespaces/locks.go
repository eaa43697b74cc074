package namespaces

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

func lockList(a *cli.App) *cobra.Command {
	var lock, scope string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the locks that are held: by whom, since when, and who waits",
		Long: `List the locks of the namespace that are held.

HOLDERS are the workflows that hold the lock, and SINCE is when the first of them got it. WAITING
are those that wait, in their order. An inner part of a flow is told as the workflow and its step;
break its lock with --holder and the workflow's id. The documents of --json have all of it: the
fences, the leases and the runs that asked.`,
		Args: cli.ArgNames(),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("scope") && lock == "" {
				return cli.Usage(cmd,
					errors.New("--scope needs --lock: name the lock of that scope"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				now, parts := time.Now(), partNames{c: c, known: map[string]*partOf{}}
				seq := func(yield func(lockLine, error) bool) {
					for r, err := range c.Locks(ctx, drover.LocksOptions{Lock: lock, Scope: scope}) {
						if !yield(lockLine{r, parts.of(ctx, &r)}, err) {
							return
						}
					}
				}
				return cli.Lines(a, cli.Table{Columns: lockColumns, None: "no locks are held"}, seq,
					func(l lockLine) []string { return lockRow(&l, now) })
			})
		},
	}
	cmd.Flags().StringVar(&lock, "lock", "", "only the lock of this name")
	cmd.Flags().StringVar(&scope, "scope", "", "the scope of that lock (default the namespace)")
	return cmd
}

// mostWaiting is how many workflows that wait are named in a line of the table.
const mostWaiting = 5

var lockColumns = []cli.Column{
	{Head: "LOCK", Keep: 16},
	{Head: "SCOPE", Keep: 8},
	{Head: "LIMIT"},
	{Head: "HOLDERS", Keep: 16},
	{Head: "SINCE"},
	{Head: "WAITING", Keep: 12},
}

func lockRow(r *lockLine, now time.Time) []string {
	since := "-"
	if len(r.Holders) > 0 {
		since = cli.Span(max(now.Sub(r.Holders[0].Since.Time()), 0))
	}
	scope := "-"
	if r.Scope != "" {
		scope = cli.Word(r.Scope, cli.Whole)
	}
	return []string{
		cli.Word(r.Lock, cli.Whole), scope, fmt.Sprint(r.Limit), r.words(r.Holders), since,
		r.words(r.Waiters),
	}
}

func (r *lockLine) words(places []schemas.LockPlace) string {
	if len(places) == 0 {
		return "-"
	}
	var names []string
	for i := range places[:min(len(places), mostWaiting)] {
		id := places[i].WorkflowID
		if p := r.Parts[id]; p != nil {
			names = append(names,
				cli.Word(p.WorkflowID, cli.Whole)+" step "+cli.Word(p.Step, cli.Whole))
			continue
		}
		names = append(names, cli.Word(id, cli.Whole))
	}
	if n := len(places) - mostWaiting; n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(names, ", ")
}

func LockCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "List the locks, and take one from its holder",
		Long:  `List the locks of the namespace, and take one from its holder.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("list or break is missing")
			}
			return cli.NoCommand(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(lockList(a), lockBreak(a))
	return cmd
}

func lockBreak(a *cli.App) *cobra.Command {
	var scope, holder, reason string
	cmd := &cobra.Command{
		Use:   "break LOCK --reason WHY",
		Short: "Take a lock from the workflow that holds it, and let in who comes next",
		Long: `Take a lock from the workflow that holds it, and let in who comes next.

The workflow goes on: what the lock guards may then be used by two. Its history tells who took the
lock, and why. A lock with several holders needs --holder.`,
		Args: cli.Filled("LOCK"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(reason) == "" {
				return cli.Usage(cmd,
					errors.New("--reason is missing: say why, for the history of the holder"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				id, err := holderOf(ctx, c, args[0], scope, holder)
				if err != nil {
					return err
				}
				if err := c.Run(id, "").BreakLock(ctx, args[0], scope, reason); err != nil {
					return err
				}
				if a.JSON {
					return a.Document(struct {
						Lock       string `json:"lock"`
						Scope      string `json:"scope,omitempty"`
						WorkflowID string `json:"workflowId"`
					}{args[0], scope, id})
				}
				return a.Say("took lock %s from %s", cli.Word(args[0], 256), cli.Word(id, 256))
			})
		},
	}
	cmd.Flags().StringVar(&scope, "scope", "", "the scope of the lock (default the namespace)")
	cmd.Flags().StringVar(&holder, "holder", "",
		"the workflow that is to lose it (default the one that holds it)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history (required)")
	return cmd
}

// holderOf finds the one holder of a lock, or the one that is meant by name: an inner part of a
// flow is meant by its workflow, too.
func holderOf(ctx context.Context, c *drover.Client, lock, scope, name string) (string, error) {
	refuse := func(code error, format string, args ...any) error {
		return &drover.Error{
			Op: "lock break", Code: schemas.CodeConflict,
			Err:  fmt.Errorf("%w: "+format, append([]any{code}, args...)...),
			Hint: "see who holds what: drover lock list",
		}
	}
	for r, err := range c.Locks(ctx, drover.LocksOptions{Lock: lock, Scope: scope}) {
		if err != nil {
			return "", err
		}
		if name != "" {
			return named(ctx, c, &r, name, refuse)
		}
		switch {
		case len(r.Holders) > 1:
			return "", refuse(drover.ErrConflict, "the lock has %d holders: name one with --holder",
				len(r.Holders))
		case len(r.Holders) == 1:
			return r.Holders[0].WorkflowID, nil
		}
	}
	if name != "" {
		return name, nil // the owner of the workflow says what is wrong
	}
	return "", refuse(drover.ErrConflict, "nobody holds the lock")
}

// named finds the holder that is meant by a name.
func named(
	ctx context.Context, c *drover.Client, r *schemas.LockRecord, name string,
	refuse func(error, string, ...any) error,
) (string, error) {
	parts := (&partNames{c: c, known: map[string]*partOf{}}).of(ctx, r)
	var ids []string
	for i := range r.Holders {
		switch id := r.Holders[i].WorkflowID; {
		case id == name:
			return name, nil
		case parts[id] != nil && parts[id].WorkflowID == name:
			ids = append(ids, id)
		}
	}
	switch len(ids) {
	case 0:
		return name, nil // the owner of the workflow says what is wrong
	case 1:
		return ids[0], nil
	}
	return "", refuse(drover.ErrConflict,
		"%d parts of workflow %q hold the lock: name one of them with --holder: %s",
		len(ids), name, strings.Join(ids, ", "))
}

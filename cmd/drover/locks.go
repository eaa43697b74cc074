package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

func locksCommand(a *app) *cobra.Command {
	var lock, scope string
	cmd := &cobra.Command{
		Use:   "locks",
		Short: "Show the locks that are held: by whom, since when, and who waits",
		Long: `Show the locks of the namespace that are held.

HOLDERS are the workflows that hold the lock, and SINCE is when the first of them got it. WAITING are those that wait, in
their order. The documents of --json have all of it: the fences, the leases and the runs that asked.`,
		Args: argNames(),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("scope") && lock == "" {
				return usage(cmd, errors.New("--scope needs --lock: name the lock of that scope"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				now := time.Now()
				seq := c.Locks(ctx, drover.LocksOptions{Lock: lock, Scope: scope})
				return lines(a, []string{"LOCK", "SCOPE", "LIMIT", "HOLDERS", "SINCE", "WAITING"}, seq, func(r schemas.LockRecord) []string {
					return lockRow(&r, now)
				})
			})
		},
	}
	cmd.Flags().StringVar(&lock, "lock", "", "only the lock of this name")
	cmd.Flags().StringVar(&scope, "scope", "", "the scope of that lock (default the namespace)")
	return cmd
}

// mostWaiting is how many workflows that wait are named in a line of the table.
const mostWaiting = 5

func lockRow(r *schemas.LockRecord, now time.Time) []string {
	since := "-"
	if len(r.Holders) > 0 {
		since = span(max(now.Sub(r.Holders[0].Since.Time()), 0))
	}
	scope := "-"
	if r.Scope != "" {
		scope = word(r.Scope, 40)
	}
	return []string{word(r.Lock, 40), scope, fmt.Sprint(r.Limit), placeWords(r.Holders), since, placeWords(r.Waiters)}
}

func placeWords(places []schemas.LockPlace) string {
	if len(places) == 0 {
		return "-"
	}
	var names []string
	for i := range places[:min(len(places), mostWaiting)] {
		names = append(names, word(places[i].WorkflowID, 40))
	}
	if n := len(places) - mostWaiting; n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(names, ", ")
}

func lockCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Take a lock from its holder",
		Long:  `Take a lock from its holder. "drover locks" shows who holds what.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("break is missing")
			}
			return noCommand(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(lockBreak(a))
	return cmd
}

func lockBreak(a *app) *cobra.Command {
	var scope, holder, reason string
	cmd := &cobra.Command{
		Use:   "break LOCK --reason WHY",
		Short: "Take a lock from the workflow that holds it, and let in who comes next",
		Long: `Take a lock from the workflow that holds it, and let in who comes next.

The workflow goes on: what the lock guards may then be used by two. Its history tells who took the lock, and why. A lock with
several holders needs --holder.`,
		Args: filled("LOCK"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(reason) == "" {
				return usage(cmd, errors.New("--reason is missing: say why, for the history of the holder"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				id := holder
				if id == "" {
					var err error
					if id, err = holderOf(ctx, c, args[0], scope); err != nil {
						return err
					}
				}
				if err := c.Run(id, "").BreakLock(ctx, args[0], scope, reason); err != nil {
					return err
				}
				if a.json {
					return a.document(struct {
						Lock       string `json:"lock"`
						Scope      string `json:"scope,omitempty"`
						WorkflowID string `json:"workflowId"`
					}{args[0], scope, id})
				}
				return a.say("took lock %s from %s", word(args[0], 256), word(id, 256))
			})
		},
	}
	cmd.Flags().StringVar(&scope, "scope", "", "the scope of the lock (default the namespace)")
	cmd.Flags().StringVar(&holder, "holder", "", "the workflow that is to lose it (default the one that holds it)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history (required)")
	return cmd
}

// holderOf finds the one holder of a lock.
func holderOf(ctx context.Context, c *drover.Client, lock, scope string) (string, error) {
	refuse := func(code error, format string, args ...any) error {
		return &drover.Error{Op: "lock break", Code: schemas.CodeConflict, Err: fmt.Errorf("%w: "+format, append([]any{code}, args...)...), Hint: "see who holds what: drover locks"}
	}
	for r, err := range c.Locks(ctx, drover.LocksOptions{Lock: lock, Scope: scope}) {
		switch {
		case err != nil:
			return "", err
		case len(r.Holders) > 1:
			return "", refuse(drover.ErrConflict, "the lock has %d holders: name one with --holder", len(r.Holders))
		case len(r.Holders) == 1:
			return r.Holders[0].WorkflowID, nil
		}
	}
	return "", refuse(drover.ErrConflict, "nobody holds the lock")
}

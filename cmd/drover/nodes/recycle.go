package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// recycledEvery is how often one looks whether a recycle is finished.
const recycledEvery = 300 * time.Millisecond

func RecycleCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recycle",
		Short: "Restart the roles of the servers, one after the other",
		Long: `Restart the roles of the servers whose home is --namespace, one after the other:
once a day at a time, or now. It is announced before, on the subject
drover.NAMESPACE.notice.recycle, to which anyone may subscribe.

A server whose turn it is asks runs with a policy of continuation to continue as
new, lets what runs finish for as long as its --drain-timeout allows, and begins
its roles anew in the same process. Meanwhile the others serve; with a single
server requests wait for a moment.`,
		Example: `  drover recycle set --at 03:30 --zone Europe/Berlin
  drover recycle show
  drover recycle now --wait
  nats sub drover.default.notice.recycle`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("set, show or now is missing")
			}
			return cli.NoCommand(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(recycleSet(a), recycleShow(a), recycleNow(a))
	return cmd
}

func recycleSet(a *cli.App) *cobra.Command {
	var at, zone, reason string
	var never bool
	every, notice, stagger := cli.DurationFlag{Some: true}, cli.DurationFlag{Some: true},
		cli.DurationFlag{Some: true}
	cmd := &cobra.Command{
		Use:   "set --at HH:MM | --never",
		Short: "Set the time of day at which the servers restart their roles",
		Long: `Say at which time of day the servers restart their roles. What was set before is
replaced as a whole. Where the clock leaves the time out, it is the first
instant after; where the clock shows it twice, it is the first one.`,
		Example: `  drover recycle set --at 03:30 --zone Europe/Berlin
  drover recycle set --at 03:30 --every 168h --notice 1h
  drover recycle set --never`,
		Args: cli.ArgNames(),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if never == (at != "") {
				return cli.Usage(cmd, errors.New("give either --at, such as 03:30, or --never"))
			}
			if never {
				return cli.RefuseFlags(cmd, []string{"zone", "every", "notice", "stagger"},
					"and --never too: leave it out")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				r, err := c.SetRecycle(ctx, ops.Recycle{
					At: at, TimeZone: zone, Every: schemas.Duration(every.Value),
					Notice:  schemas.Duration(notice.Value),
					Stagger: schemas.Duration(stagger.Value),
				}, reason)
				if err != nil {
					return recycleError(a, err)
				}
				return showRecycle(a, r, false)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&at, "at", "", "the time of day, such as 03:30")
	fs.StringVar(&zone, "zone", "", "time zone of --at, such as Europe/Berlin (default UTC)")
	fs.Var(&every, "every", "time between two, in whole days (default 24h)")
	fs.Var(&notice, "notice", "how long before it is announced, up to 24h (default 10m)")
	fs.Var(&stagger, "stagger", "time between two servers, up to 1h (default 2m)")
	fs.BoolVar(&never, "never", false, "restart them no more")
	fs.StringVar(&reason, "reason", "", "why, for the operations of the namespace")
	return cmd
}

func recycleShow(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show when the servers restart their roles, and the status of each",
		Args:  cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				r, err := c.ShowRecycle(ctx)
				if err != nil {
					return err
				}
				return showRecycle(a, r, true)
			})
		},
	}
}

func recycleNow(a *cli.App) *cobra.Command {
	var reason string
	var wait bool
	notice := cli.DurationFlag{Some: true}
	cmd := &cobra.Command{
		Use:   "now",
		Short: "Restart the roles of the servers now, one after the other",
		Long: `Restart the roles of the servers now, or after --notice, one after the other.
Between two servers it waits for the stagger of "drover recycle set", or for two
minutes if nothing is set.

With --wait the command returns when all have had their turn; --timeout bounds
that.`,
		Example: `  drover recycle now --wait
  drover recycle now --notice 10m --reason "the new certificates"`,
		Args: cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				r, err := c.RecycleNow(ctx, notice.Value, reason)
				if err == nil && wait && r.Latest != nil {
					r, err = recycled(ctx, c, r.Latest.Slot)
				}
				if err != nil {
					return recycleError(a, err)
				}
				return showRecycle(a, r, true)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.Var(&notice, "notice", "how long before it is announced, up to 24h (default at once)")
	fs.BoolVar(&wait, "wait", false, "return when all servers have had their turn")
	fs.StringVar(&reason, "reason", "",
		"why, for those who subscribe, and for the operations of the namespace")
	return cmd
}

// recycled waits until the recycle of a slot, or a later one, is finished.
func recycled(
	ctx context.Context, c *drover.Client, slot schemas.Timestamp,
) (*ops.RecycleResponse, error) {
	for {
		r, err := c.ShowRecycle(ctx)
		if err != nil {
			return nil, err
		}
		if l := r.Latest; l != nil &&
			(l.Slot > slot || l.Slot == slot && l.Phase == ops.RecycleFinished) {
			return r, nil
		}
		if sleep.For(ctx, recycledEvery) != nil {
			return nil, fmt.Errorf("recycle now: it goes on, and is not finished yet: %w",
				ctx.Err())
		}
	}
}

// recycleFlags are the flags of the fields that a server complains of.
var recycleFlags = map[string]string{
	"recycle.at": "--at", "recycle.timeZone": "--zone", "recycle.every": "--every",
	"recycle.notice": "--notice", "recycle.stagger": "--stagger",
	"notice": "--notice", "reason": "--reason", "namespace": "--namespace",
}

// recycleError names the flag, to people.
func recycleError(a *cli.App, err error) error {
	e, ok := errors.AsType[*drover.Error](err)
	refusal, refused := errors.AsType[*schemas.Error](err)
	if !ok || !refused || a.JSON || recycleFlags[refusal.Field] == "" {
		return err
	}
	told, about := *e, *refusal
	flag, field := recycleFlags[refusal.Field], refusal.Field[strings.LastIndex(refusal.Field, ".")+1:]
	if rest, found := strings.CutPrefix(refusal.Message, field+" "); found {
		about.Message = flag + " " + rest
	} else {
		about.Message = flag + ": " + refusal.Message
	}
	about.Field, told.Err = "", &about
	return &told
}

var recycleColumns = []cli.Column{{Head: "NODE", Keep: 12}, {Head: "SINCE"}, {Head: "PHASE"}}

func showRecycle(a *cli.App, r *ops.RecycleResponse, nodes bool) error {
	if r.V = 0; a.JSON {
		return a.Document(r)
	}
	if err := a.Say("%s", recycleWords(r)); err != nil {
		return err
	}
	if l := r.Latest; nodes && l != nil {
		if err := a.Say("%s", latestWords(l)); err != nil {
			return err
		}
	}
	if !nodes {
		return nil
	}
	return cli.Lines(a, cli.Table{Columns: recycleColumns, None: "no servers"}, each(r.Nodes),
		func(n ops.RecycleNode) []string {
			return []string{cli.Word(n.Node, cli.Whole), cli.When(n.Since), orDash(string(n.Phase))}
		})
}

// recycleWords says what is set.
func recycleWords(r *ops.RecycleResponse) string {
	next := ""
	if r.Next != 0 {
		next = "; next " + cli.When(r.Next)
	}
	if r.Recycle == nil || r.Recycle.At == "" {
		return "no daily recycle" + next
	}
	days := "each day"
	if n := r.Recycle.Every.Std() / (24 * time.Hour); n > 1 {
		days = fmt.Sprintf("every %d days", n)
	}
	return fmt.Sprintf("%s at %s %s%s", days, cli.Word(r.Recycle.At, 8),
		cli.Word(cmp.Or(r.Recycle.TimeZone, "UTC"), 64), next)
}

// latestWords says where the last recycle stands.
func latestWords(l *ops.RecycleNotice) string {
	text := "the last one is over"
	switch l.Phase {
	case ops.RecycleAnnounced:
		text = "announced for " + cli.When(l.At)
	case ops.RecycleDraining, ops.RecycleExited, ops.RecycleReturned:
		text = fmt.Sprintf("goes on: %s %s", cli.Word(l.Node, 64), l.Phase)
	}
	if l.Reason != "" {
		text += ": " + cli.Sentence(l.Reason)
	}
	return text
}

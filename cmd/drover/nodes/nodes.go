package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

func nodeList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the servers: status, last sign of life, roles",
		Long: `List the running servers of the NATS account, and those that did not end properly
in the last day.

A server is recovering, ready, draining, not-responding (nothing was heard of it for ten seconds)
or unexpected-shutdown (it was started again after it had not ended properly). HEARD is the time
since its last sign of life, and PARTITIONS are those of --namespace that it owns, both by the
NATS server's clock; CLOCK is how far its own clock is ahead of that. A server that ends properly
leaves the list.

It reads the bucket drover-nodes directly, so that no server needs to run.`,
		Args: cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				all, err := readNodes(ctx, c)
				if err != nil {
					return err
				}
				return cli.Lines(a, cli.Table{Columns: nodeColumns, None: "no servers"}, each(all),
					nodeRow)
			})
		},
	}
}

var nodeColumns = []cli.Column{
	{Head: "NODE", Keep: 12},
	{Head: "STATUS"},
	{Head: "SINCE", Drop: 3},
	{Head: "HEARD"},
	{Head: "ROLES", Keep: 12, Drop: 5},
	{Head: "PARTITIONS", Keep: 10},
	{Head: "NAMESPACES", Keep: 10},
	{Head: "VERSION", Drop: 2},
	{Head: "PROFILE", Drop: 1},
	{Head: "CLOCK", Drop: 4},
}

// NodeInfo is a line of "drover node list".
type NodeInfo struct {
	schemas.NodeRecord
	// of the last sign of life, by the NATS server's clock
	HeardAt schemas.Timestamp `json:"heardAt"`
	Age     schemas.Duration  `json:"age"` // the time since then
	// that is less than it takes to be not responding
	Alive bool `json:"alive"`
	// of the node, against the NATS server
	ClockAhead  int64 `json:"clockAheadMillis"`
	Partitions  []int `json:"partitions,omitempty"` // that it owns in the namespace
	Malformed   bool  `json:"malformed,omitempty"`  // the record cannot be read
	clockOffset time.Duration
}

// each is a list as a sequence that cannot fail.
func each[T any](all []T) func(yield func(T, error) bool) {
	return func(yield func(T, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func readNodes(ctx context.Context, c *drover.Client) ([]NodeInfo, error) {
	register, list, err := cli.OpenNodes(ctx, c)
	if err != nil {
		return nil, err
	}
	owned, err := owners(ctx, c)
	if err != nil {
		return nil, err
	}
	now := register.Now(ctx)
	if now.IsZero() {
		now = time.Now()
	}
	all := make([]NodeInfo, 0, len(list))
	for i := range list {
		l := &list[i]
		n := NodeInfo{
			NodeRecord: l.NodeRecord, HeardAt: schemas.At(l.HeardAt()),
			Age: schemas.Duration(max(now.Sub(l.HeardAt()), 0)), Alive: register.Alive(l, now),
			Partitions: owned[l.Node], Malformed: l.Malformed, clockOffset: l.ClockOffset(),
		}
		if !n.Alive && !n.Malformed && n.Status != schemas.NodeNotResponding {
			// no master has said so
			n.Status, n.Since = schemas.NodeNotResponding, n.HeardAt
		}
		n.Node, n.ClockAhead = cmp.Or(n.Node, l.Key), n.clockOffset.Milliseconds()
		all = append(all, n)
	}
	return all, nil
}

// owners are the partitions of the namespace by node.
func owners(ctx context.Context, c *drover.Client) (map[string][]int, error) {
	list, _, err := readClaims(ctx, c)
	if errors.Is(err, drover.ErrNotFound) {
		return nil, nil // there may be nodes and no such namespace
	}
	owned := map[string][]int{}
	for _, i := range list {
		if p, ok := claims.ParsePartition(i.Key); ok && !i.Expired {
			owned[i.Node] = append(owned[i.Node], p)
		}
	}
	for _, p := range owned {
		slices.Sort(p)
	}
	return owned, err
}

func nodeRow(n NodeInfo) []string {
	if n.Malformed {
		return []string{
			cli.Word(n.Node, 64), "?", "-", cli.Span(n.Age.Std()), "-", "-", "-", "-", "-", "-",
		}
	}
	offset := n.clockOffset.Truncate(time.Millisecond) // what is less is the heartbeat's way
	ahead := cli.Span(offset)
	if offset >= 0 {
		ahead = "+" + ahead
	}
	return []string{
		cli.Word(n.Node, 64), cli.Word(string(n.Status), 40), cli.When(n.Since),
		cli.Span(n.Age.Std()), orDash(cli.Word(strings.Join(n.Roles, "+"), 40)),
		partitionWords(n.Partitions), orDash(cli.Word(strings.Join(n.Namespaces, ","), 40)),
		cli.Word(n.Version, 40), cli.Word(n.Profile, 40), ahead,
	}
}

func orDash(s string) string {
	if s == "" || s == `""` {
		return "-"
	}
	return s
}

// partitionWords writes sorted numbers with ranges: 0-3,7.
func partitionWords(all []int) string {
	var words []string
	for i := 0; i < len(all); {
		j := i
		for j+1 < len(all) && all[j+1] == all[j]+1 {
			j++
		}
		if j > i {
			words = append(words, fmt.Sprintf("%d-%d", all[i], all[j]))
		} else {
			words = append(words, fmt.Sprint(all[i]))
		}
		i = j + 1
	}
	return orDash(strings.Join(words, ","))
}

func NodeCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "List the servers, acknowledge a crash, forget a dead one",
		Long: `List the servers, acknowledge an unexpected shutdown, or forget a dead server. ` +
			`"drover drain" stops one.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("list, ack or remove is missing")
			}
			return cli.NoCommand(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(nodeList(a), nodeAck(a), nodeRemove(a))
	return cmd
}

const opAck = "node ack"

func nodeAck(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "ack NODE",
		Short: "Let the roles begin of a server that waits after a crash (--after-crash halt)",
		Args:  cli.ArgNames("NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				t, err := findTarget(ctx, c, opAck, args[0])
				if err != nil {
					return err
				}
				answer, err := t.tell(ctx,
					schemas.Control{Kind: schemas.ControlAck, Reason: reason})
				if err != nil {
					return err
				}
				if answer.V = 0; a.JSON {
					return a.Document(answer)
				}
				return a.Say("node %s is %s", cli.Word(answer.Node, 256), answer.Status)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the log of the server")
	return cmd
}

func nodeRemove(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NODE",
		Short: "Remove the record of a dead server, which otherwise goes after a day",
		Args:  cli.ArgNames("NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				return removeNode(ctx, a, c, args[0])
			})
		},
	}
}

func removeNode(ctx context.Context, a *cli.App, c *drover.Client, name string) error {
	register, list, err := cli.OpenNodes(ctx, c)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list,
		func(i nodes.Info) bool { return i.Node == name || i.Malformed && i.Key == name })
	if i < 0 {
		return noNode("node remove", name)
	}
	if err := register.Remove(ctx, list[i]); err != nil {
		if errors.Is(err, nodes.ErrAlive) || errors.Is(err, nodes.ErrChanged) {
			return &drover.Error{Op: "node remove", ID: name, Code: schemas.CodeConflict, Err: err}
		}
		return err
	}
	if a.JSON {
		return a.Document(struct {
			Node string `json:"node"`
		}{name})
	}
	return a.Say("removed the record of node %s", cli.Word(name, 256))
}

func noNode(op, name string) error {
	return &drover.Error{
		Op: op, ID: name, Code: schemas.CodeNotFound, Err: errors.New("there is no such node"),
		Hint: `"drover node list" lists them`,
	}
}

package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// controlTimeout is how long a process may take to say that it has heard.
	controlTimeout = 5 * time.Second
	// goneEvery is how often one looks whether a drained process is gone.
	goneEvery = 100 * time.Millisecond
	// oneLook bounds such a look: the NATS server may be gone too.
	oneLook = time.Second
)

func DrainCommand(a *cli.App) *cobra.Command {
	limit := cli.DurationFlag{Some: true}
	var wait bool
	var reason string
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Stop a server or an activity worker in good order",
		Long: `Stop a server as planned, from anywhere: it takes no more work, finishes what runs,
hands its partitions over and ends with exit code 0. NODE is its name in "drover node list", or
the identity of an activity worker. It is what SIGTERM does.

What runs may take --drain-timeout, or else what the process was started with: 5 minutes by
default. With --wait the command returns when the process is gone; --timeout bounds that.`,
		Example: `  drover drain node-2 --wait
  drover drain worker-7 --drain-timeout 30s`,
		Args: cli.ArgNames("NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				t, err := findTarget(ctx, c, "drain", args[0])
				if err != nil {
					return err
				}
				order := schemas.Control{
					Kind: schemas.ControlDrain, Reason: reason,
					Timeout: schemas.Duration(limit.Value),
				}
				answer, err := t.tell(ctx, order)
				if err != nil {
					return err
				}
				if wait {
					if err := t.awaitEnd(ctx, order); err != nil {
						return err
					}
				}
				if a.JSON {
					return a.Document(drained{Node: answer.Node, Status: answer.Status, Gone: wait})
				}
				if wait {
					return a.Say("%s has left", cli.Word(answer.Node, 256))
				}
				return a.Say("%s is %s", cli.Word(answer.Node, 256),
					cmp.Or(answer.Status, schemas.NodeDraining))
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.Var(&limit, "drain-timeout",
		"how long it may wait for what runs (default that of the process, 5m)")
	fs.BoolVar(&wait, "wait", false, "return when it is gone")
	fs.StringVar(&reason, "reason", "", "why, for its log")
	return cmd
}

// drained is what drain prints with --json.
type drained struct {
	Node   string             `json:"node"`
	Status schemas.NodeStatus `json:"status,omitempty"`
	Gone   bool               `json:"gone"`
}

// target is a process that listens on a control subject.
type target struct {
	op, name string
	conn     *natsconn.Conn
	home     subject.Namespace
	register *nodes.Registry
	node     *nodes.Info // nil for a worker
	own      bool        // the NATS server that answers is the node's own, and ends with it
}

// findTarget looks a name up among the nodes. Any other name may be a worker's, in the namespace of
// the command.
func findTarget(ctx context.Context, c *drover.Client, op, name string) (*target, error) {
	if err := subject.ValidateID("NODE", name); err != nil {
		return nil, cli.Usage(nil, err)
	}
	t := &target{op: op, name: name, conn: natsconn.Of(c), home: subject.Namespace(c.Namespace())}
	register, list, err := cli.OpenNodes(ctx, c)
	if err != nil {
		return nil, err
	}
	t.register = register
	if i := slices.IndexFunc(list, func(i nodes.Info) bool { return i.Node == name }); i >= 0 {
		t.node, t.home = &list[i], subject.Namespace(list[i].Namespace)
		t.own = list[i].Profile != "external" && list[i].Server == c.NATS().ConnectedServerId()
	}
	return t, nil
}

// tell sends an order and waits for the answer.
func (t *target) tell(ctx context.Context, order schemas.Control) (*schemas.ControlAnswer, error) {
	order.V = schemas.Version
	body, err := schemas.MarshalJSON(&order)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	m, err := t.conn.Request(ctx, t.home.Control(t.name), nil, body)
	switch {
	case errors.Is(err, natsconn.ErrNoResponders):
		return nil, t.nobody(err)
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w", t.op, t.name, err)
	}
	var answer schemas.ControlAnswer
	if err := schemas.Unmarshal(m.Data, &answer); err != nil {
		return nil, fmt.Errorf("%s %s: the answer cannot be read: %w", t.op, t.name, err)
	}
	if answer.Error != nil {
		return nil, &drover.Error{Op: t.op, ID: t.name, Code: answer.Error.Code, Err: answer.Error}
	}
	return &answer, nil
}

// nobody says who does not listen.
func (t *target) nobody(err error) error {
	e := &drover.Error{Op: t.op, ID: t.name, Code: schemas.CodeNotFound}
	if t.node == nil && t.op == opAck {
		e.Err, e.Hint = fmt.Errorf("there is no node of that name: %w", err),
			`"drover node list" lists them`
		return e
	}
	if t.node == nil {
		e.Err = fmt.Errorf(
			"there is no node of that name, and no worker of namespace %s with that identity: %w",
			t.home, err)
		e.Hint = `"drover node list" lists the nodes; for a worker give its --namespace`
		return e
	}
	e.Err = fmt.Errorf("the node does not listen; it was heard of at %s: %w",
		t.node.HeardAt().UTC().Format(time.RFC3339), err)
	e.Hint = fmt.Sprintf("if it is dead: drover node remove %s", t.name)
	return e
}

// awaitEnd waits until the process is gone: a node when its record is, a worker when it does not
// listen any more.
func (t *target) awaitEnd(ctx context.Context, order schemas.Control) error {
	for {
		if gone, err := t.gone(ctx, order); gone || err != nil {
			return err
		}
		if sleep.For(ctx, goneEvery) != nil {
			return fmt.Errorf("%s %s: it drains, and is not gone yet: %w", t.op, t.name, ctx.Err())
		}
	}
}

func (t *target) gone(ctx context.Context, order schemas.Control) (bool, error) {
	if t.node == nil {
		one, cancel := context.WithTimeout(ctx, oneLook)
		defer cancel()
		_, err := t.tell(one, order)
		if e, ok := errors.AsType[*drover.Error](err); ok && e.Code == schemas.CodeNotFound {
			return true, nil
		}
		if ctx.Err() == nil && one.Err() != nil {
			// it has heard the question and left before it could answer
			return false, nil
		}
		return false, err
	}
	one, cancel := context.WithTimeout(ctx, oneLook)
	defer cancel()
	list, err := t.register.List(one)
	switch {
	case t.own && !t.conn.Connected():
		return true, nil
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return false, nil
	case ctx.Err() == nil && t.own && err != nil:
		// its streams go before its connections: it is nearly gone
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s %s: %w", t.op, t.name, err)
	}
	i := slices.IndexFunc(list, func(i nodes.Info) bool { return i.Node == t.name })
	if i < 0 || list[i].Boot != t.node.Boot {
		return true, nil
	}
	if !t.register.Alive(&list[i], t.register.Now(one)) {
		// the server may go between the two questions
		return false, &drover.Error{
			Op: t.op, ID: t.name, Code: schemas.CodeInternal,
			Err:  errors.New("the node died while it drained"),
			Hint: "its partitions are taken over when its claims run out; nothing is lost",
		}
	}
	return false, nil
}

package recycle

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/ops/operations"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas/ops"
)

// KeeperOptions of [NewKeeper]. Logger is none by default; the others are required.
type KeeperOptions struct {
	Conn      *natsconn.Conn
	Namespace subject.Namespace
	// Node is the name of this node, and Nodes is the register.
	Node   string
	Nodes  *nodes.Registry
	Logger logrus.FieldLogger
}

// Keeper is what the master of a namespace does about recycles.
type Keeper struct {
	o     KeeperOptions
	store store
	log   logrus.FieldLogger
	woken chan struct{}
}

// NewKeeper returns a keeper.
func NewKeeper(o KeeperOptions) *Keeper {
	log := logx.Or(o.Logger)
	return &Keeper{
		o: o, log: log, woken: make(chan struct{}, 1),
		store: store{
			conn: o.Conn, ns: o.Namespace, notes: operations.New(o.Conn, o.Namespace, o.Node, log),
		},
	}
}

// Run announces recycles and answers the verbs until ctx ends. It is a task of the master.
func (k *Keeper) Run(ctx context.Context) error {
	stop, err := service.Serve(ctx,
		service.Options{Conn: k.o.Conn, Namespace: k.o.Namespace, Logger: k.o.Logger}, k.verbs())
	if err != nil {
		return err
	}
	defer stop()
	sub, err := k.o.Conn.Subscribe(k.o.Namespace.NoticeRecycle(), "",
		func(natsconn.Msg) { wake(k.woken) })
	if err == nil {
		defer sub.Close()
	}
	said := ""
	for {
		wait, err := k.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, natsconn.ErrWrongSequence):
			wait = shortPause // somebody else has said something
		case err == nil:
			said = ""
		case err.Error() != said:
			said = err.Error()
			k.log.WithField("err", err).Warn("recycles cannot be kept now; trying again")
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-k.woken:
		case <-ctx.Done():
			t.Stop()
			return nil
		}
		t.Stop()
	}
}

// look says what is to be said now, and after which time to look again at the latest.
func (k *Keeper) look(ctx context.Context) (time.Duration, error) {
	set, _, err := k.store.set(ctx)
	if err != nil {
		return nodeLook, err
	}
	state, rev, err := k.store.state(ctx)
	if err != nil {
		return nodeLook, err
	}
	if set.At == "" && set.Asked == 0 && !goesOn(state) {
		return idleLook, nil
	}
	p, err := compile(set)
	if err != nil {
		return idleLook, err // somebody else has written it
	}
	members, err := k.members(ctx)
	if err != nil {
		return nodeLook, err
	}
	say, wait := p.step(state, members, k.now(ctx))
	if say == nil {
		return wait, nil
	}
	return shortPause, k.tell(ctx, say, rev)
}

// tell says something and logs it.
func (k *Keeper) tell(ctx context.Context, n *ops.RecycleNotice, rev uint64) error {
	if err := k.store.say(ctx, n, rev); err != nil {
		return err
	}
	log := k.log.WithField("slot", n.Slot.Time().Format(time.RFC3339))
	if n.Reason != "" {
		log = log.WithField("reason", n.Reason)
	}
	if n.Phase == ops.RecycleAnnounced {
		log.WithField("begins", n.At.Time().Format(time.RFC3339)).Info("a recycle is announced")
	} else {
		log.Info("the recycle is over")
	}
	return nil
}

// now is the time by the NATS server's clock.
func (k *Keeper) now(ctx context.Context) time.Time { return Now(ctx, k.o.Nodes) }

// Now is the time by the NATS server's clock, or by our own while that is not known.
func Now(ctx context.Context, r *nodes.Registry) time.Time {
	if at := r.Now(ctx); !at.IsZero() {
		return at
	}
	return time.Now()
}

// members are the live nodes of the deployment, sorted by name.
func (k *Keeper) members(ctx context.Context) ([]member, error) {
	list, err := k.o.Nodes.List(ctx)
	if err != nil {
		return nil, err
	}
	now := k.now(ctx)
	var all []member
	for i := range list {
		n := &list[i]
		if !n.Malformed && n.Namespace == string(k.o.Namespace) && k.o.Nodes.Alive(n, now) {
			all = append(all, member{n.Node, cmp.Or(n.RolesSince, n.Started).Time()})
		}
	}
	slices.SortFunc(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

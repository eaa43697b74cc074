package recycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/ops/operations"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// nodeLook is how long a node waits at most between two looks at a recycle; notices wake it.
	nodeLook = 10 * time.Second
	// suggesting bounds how long a node asks its runs to continue as new.
	suggesting = time.Minute
	// telling bounds how long a node tries to say where it stands.
	telling = 10 * time.Second
)

// RunnerOptions of [NewRunner]. All are required, but for Suggest and Logger.
type RunnerOptions struct {
	Conn *natsconn.Conn
	// Namespace is the home of the node, Claims are those of it, and Node is its name.
	Namespace subject.Namespace
	Claims    *claims.Claims
	Node      string
	// Since is when the roles of the node began, and Now the time, both by the NATS server's clock.
	Since func() time.Time
	Now   func(ctx context.Context) time.Time
	// Suggest asks the open runs of the node that have a policy of continuation to continue as new,
	// and tells how many were asked.
	Suggest func(ctx context.Context) (asked int, err error)
	// Restart ends the roles and begins them again; Since is then at the slot or later. It returns
	// when they are at work. With Exits it returns when they have ended, and the process is about
	// to.
	Restart func(ctx context.Context, slot time.Time) error
	Exits   bool
	Logger  logrus.FieldLogger
}

// Runner gives a node its turns.
type Runner struct {
	o     RunnerOptions
	store store
	log   logrus.FieldLogger
}

// NewRunner returns a runner.
func NewRunner(o RunnerOptions) *Runner {
	log := logx.Or(o.Logger)
	return &Runner{
		o: o, log: log,
		store: store{
			conn: o.Conn, ns: o.Namespace, notes: operations.New(o.Conn, o.Namespace, o.Node, log),
		},
	}
}

// Run gives the node its turns until ctx ends, and returns nil. A turn that has begun comes to its
// end.
func (r *Runner) Run(ctx context.Context) error {
	woken := make(chan struct{}, 1)
	sub, err := r.o.Conn.Subscribe(r.o.Namespace.NoticeRecycle(), "",
		func(natsconn.Msg) { wake(woken) })
	if err == nil {
		defer sub.Close()
	} // without that right it takes a little longer
	said := ""
	for ctx.Err() == nil {
		wait, err := r.look(ctx)
		switch {
		case err == nil:
			said = ""
		case ctx.Err() == nil:
			wait = idleLook
			if err.Error() != said && !errors.Is(err, natsconn.ErrNoStream) {
				// without its home a node has no recycles
				said = err.Error()
				r.log.WithField("err", err).Warn("recycles cannot be looked at now; trying again")
			}
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-woken:
		case <-ctx.Done():
		}
		t.Stop()
	}
	return nil
}

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (r *Runner) self() member { return member{r.o.Node, r.o.Since()} }

// look does what is to be done now, and says after which time to look again at the latest.
func (r *Runner) look(ctx context.Context) (time.Duration, error) {
	state, _, err := r.store.state(ctx)
	if err != nil || !goesOn(state) {
		return nodeLook, err
	}
	act, wait := turn(state, r.self(), r.o.Now(ctx))
	switch act {
	case resume:
		return 0, r.say(ctx, state.Slot, ops.RecycleReturned, "")
	case enter:
		return 0, r.enter(ctx)
	}
	return wait, nil
}

func (r *Runner) say(
	ctx context.Context, slot schemas.Timestamp, phase ops.RecyclePhase, reason string,
) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), telling)
	defer cancel()
	return r.store.sayOf(ctx, ops.RecycleNotice{
		Phase: phase, Slot: slot, At: schemas.At(r.o.Now(ctx)), Node: r.o.Node, Reason: reason,
	})
}

// enter waits for the claim and has the node's turn under it, if it is still due.
func (r *Runner) enter(ctx context.Context) error {
	once, done := context.WithCancel(ctx)
	defer done()
	var failed error
	err := r.o.Claims.Hold(once, claims.Recycle, claims.HoldOptions{},
		func(held context.Context, _ *claims.Lease) error {
			defer done()
			if failed = r.turn(ctx, held); held.Err() != nil {
				failed = nil // the claim was lost before the turn began, or the node is told to stop
			}
			return nil
		})
	return errors.Join(err, failed)
}

// turn is a node's turn. ctx is that of the node, held that of the claim: without it the turn does
// not begin.
func (r *Runner) turn(ctx, held context.Context) error {
	for {
		state, rev, err := r.store.state(held)
		if err != nil {
			return err
		}
		now := r.o.Now(held)
		if act, _ := turn(state, r.self(), now); act != enter {
			return nil
		}
		set, _, err := r.store.set(held)
		if err != nil {
			return err
		}
		if wait := mayBegin(state, r.o.Node, (&plan{set: *set}).stagger(), now); wait > 0 {
			if sleep.For(held, min(wait, nodeLook)) != nil {
				return nil
			}
			continue
		}
		n := ops.RecycleNotice{
			Phase: ops.RecycleDraining,
			Slot:  state.Slot,
			At:    schemas.At(now),
			Node:  r.o.Node,
		}
		switch err := r.store.say(held, &n, rev); {
		case errors.Is(err, natsconn.ErrWrongSequence):
			continue
		case err != nil:
			return err
		}
		return r.restart(ctx, state.Slot)
	}
}

func (r *Runner) restart(ctx context.Context, slot schemas.Timestamp) error {
	log := r.log.WithField("slot", slot.Time().Format(time.RFC3339))
	log.Info("recycle: it is this node's turn; its roles restart")
	if r.o.Suggest != nil {
		limit, cancel := context.WithTimeout(ctx, suggesting)
		asked, err := r.o.Suggest(limit)
		cancel()
		switch {
		case err != nil:
			log.WithField("err", err).Warn(
				"recycle: not all runs were asked to continue as new; they go on after the restart")
		case asked > 0:
			log.WithField("runs", asked).Info("recycle: runs were asked to continue as new")
		}
	}
	if err := r.o.Restart(ctx, slot.Time()); err != nil {
		return fmt.Errorf("recycle: restart: %w", err)
	}
	if r.o.Exits {
		return r.say(ctx, slot, ops.RecycleExited, "")
	}
	if ctx.Err() != nil {
		return nil // told to stop meanwhile: it has not returned
	}
	log.Info("recycle: the roles of this node run again")
	return r.say(ctx, slot, ops.RecycleReturned, "")
}

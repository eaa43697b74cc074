package ops

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/schemas"
)

const (
	defaultLostAtOnce = 256
	defaultLostAnswer = 5 * time.Second
)

// ReverterOptions of [NewReverter].
type ReverterOptions struct {
	// Conn needs the rights of the role ops. Required.
	Conn *natsconn.Conn
	// Namespace is the tenant. Required.
	Namespace subject.Namespace
	// AtOnce bounds the tasks of one consumer that a sweep looks at. Defaults to 256.
	AtOnce int
	// Answer is how long the owner of a workflow may take to answer. Defaults to 5 s.
	Answer time.Duration
	// Logger is told of each attempt that is reverted or set to failed. Defaults to none.
	Logger logrus.FieldLogger
}

// Reverter looks for activities that began and whose worker is lost, with no other worker there
// that would be given the task and ask: the third action of the health task. An attempt that may be
// repeated goes back to its list, any other fails with the reason "interrupted", so that its
// decider is asked what to do.
//
// What tells a lost worker is its lease: the server delivers a task whose lease is over to whoever
// asks next. The reverter asks only where nobody has been waiting for two sweeps, so it takes
// nothing away from a worker, and what it is given that has never been delivered before, or has not
// begun, it hands back. It decides nothing: the owner of the workflow does, by the same rule as for
// a worker that holds a redelivery (P-7).
type Reverter struct {
	opts ReverterOptions
	// deserted are the consumers that had unfinished tasks and no waiting worker at the last sweep.
	deserted map[string]bool
	standing map[string]*returnedTasks // by consumer, of those that are deserted
	sweeps   int
	silent   map[string]bool // partitions whose owner has not answered in this sweep
	serial   uint64
	nonce    string
}

// NewReverter checks the options. A Reverter is used by one goroutine.
func NewReverter(o ReverterOptions) (*Reverter, error) {
	if o.Conn == nil || o.Namespace == "" {
		return nil, fmt.Errorf("ops: %w: Conn and Namespace of ReverterOptions are required",
			ErrInvalidOptions)
	}
	o.AtOnce, o.Answer = cmp.Or(o.AtOnce, defaultLostAtOnce), cmp.Or(o.Answer, defaultLostAnswer)
	if o.AtOnce < 0 || o.Answer < 0 {
		return nil, fmt.Errorf(
			"ops: %w: AtOnce is %d and Answer %v: use more than 0, or 0 for the defaults",
			ErrInvalidOptions, o.AtOnce, o.Answer)
	}
	o.Logger = logx.Or(o.Logger)
	return &Reverter{
		opts: o, deserted: map[string]bool{}, standing: map[string]*returnedTasks{},
		nonce: "lost-" + rand.Text()[:12] + "-",
	}, nil
}

// Revert does one sweep over all lists of the namespace, and tells how many attempts went back to
// their list and how many activities failed.
func (r *Reverter) Revert(ctx context.Context) (reverted, failed int, err error) {
	streams, err := r.opts.Conn.StreamNames(ctx, r.opts.Namespace.AllTasks("*"))
	if err != nil {
		return 0, 0, fmt.Errorf("ops: task lists of namespace %s: %w", r.opts.Namespace, err)
	}
	was, stood := r.deserted, r.standing
	r.deserted, r.standing = map[string]bool{}, map[string]*returnedTasks{}
	r.silent = map[string]bool{}
	r.sweeps++
	var errs []error
	for _, stream := range streams {
		for _, consumer := range subject.Consumers() {
			if ctx.Err() != nil {
				return reverted, failed, errors.Join(errs...)
			}
			key := stream + "/" + consumer
			w, err := r.opts.Conn.WorkState(ctx, stream, consumer)
			switch {
			case errors.Is(err, natsconn.ErrNoConsumer), errors.Is(err, natsconn.ErrNoStream):
				// somebody's own stream on our subjects, or one that is being made or deleted
				continue
			case err != nil:
				errs = append(errs, fmt.Errorf("ops: %s: %w", key, err))
				continue
			case w.Working == 0 || w.Waiting > 0:
				continue
			}
			r.deserted[key] = true
			if !was[key] {
				continue // its worker may just be between two requests
			}
			r.standing[key] = cmp.Or(stood[key], newReturnedTasks(r.opts.AtOnce))
			back, gone, err := r.sweep(ctx, stream, consumer, r.standing[key],
				int(min(w.Working, int64(r.opts.AtOnce))))
			reverted, failed = reverted+back, failed+gone
			if err != nil && ctx.Err() == nil {
				errs = append(errs, fmt.Errorf("ops: %s: %w", key, err))
			}
		}
	}
	return reverted, failed, errors.Join(errs...)
}

// sweep takes the tasks of one consumer whose lease is over. Those that stand are handed back at
// the end: the server would give them to us again.
func (r *Reverter) sweep(
	ctx context.Context, stream, consumer string, known *returnedTasks, most int,
) (reverted, failed int, err error) {
	var stand []natsconn.Task
	defer func() {
		for _, t := range stand {
			_ = t.Nak(0) // what is not handed back comes back when our own lease is over
		}
	}()
	for range most {
		t, ok, err := r.opts.Conn.Take(ctx, stream, consumer)
		if err != nil || !ok {
			return reverted, failed, err
		}
		if t.Delivered <= 1 {
			known.first(t, r.sweeps)
			stand = append(stand, t) // the lost ones come first, so there are no more
			return reverted, failed, nil
		}
		if known.still(t, r.sweeps) {
			stand = append(stand, t)
			continue
		}
		done, err := r.ask(ctx, t)
		switch {
		case errors.Is(err, errSilent):
			stand = append(stand, t)
			continue
		case err != nil:
			stand = append(stand, t)
			return reverted, failed, err
		}
		switch done {
		case schemas.LostReverted:
			reverted++
		case schemas.LostFailed:
			failed++
		case schemas.LostGone:
		case schemas.LostStands:
			known.said(t, r.sweeps)
			stand = append(stand, t)
			continue
		default: // it is held, or a later version has decided something else
			stand = append(stand, t)
			continue
		}
		if err := t.Ack(); err != nil {
			return reverted, failed, err // it comes back, and the owner says that it is gone
		}
	}
	return reverted, failed, nil
}

// errSilent says that the owner has not answered about another task of this sweep. It is not waited
// for again: all of the health task would wait.
var errSilent = errors.New("the owner is silent")

// partitionOf is what a subject to report on says of the partition; the subject itself if it is
// none of ours.
func partitionOf(report string) string {
	p, _, _, _, err := subject.ParseIn(report)
	if err != nil {
		return report
	}
	return strconv.Itoa(p)
}

// ask lets the owner of the workflow decide about a task. One that cannot be read is left to the
// workers, who park it.
func (r *Reverter) ask(ctx context.Context, t natsconn.Task) (schemas.LostTask, error) {
	var task schemas.ActivityTask
	if err := schemas.Unmarshal(t.Data, &task); err != nil || task.Report == "" ||
		task.Token == "" {
		return schemas.LostStands, nil //nolint:nilerr // see above
	}
	partition := partitionOf(task.Report)
	if r.silent[partition] {
		return "", errSilent
	}
	conn := r.opts.Conn
	inbox := conn.NATS().NewInbox()
	answers := make(chan schemas.Permission, 1)
	r.serial++
	nonce := r.nonce + strconv.FormatUint(r.serial, 36)
	sub, err := conn.Subscribe(inbox, "", func(m natsconn.Msg) {
		var p schemas.Permission
		if schemas.Unmarshal(m.Data, &p) == nil && p.Nonce == nonce {
			select {
			case answers <- p:
			default:
			}
		}
	})
	if err != nil {
		return "", err
	}
	defer func() { _ = sub.Close() }() // it fails only when the connection is closed
	ctx, cancel := context.WithTimeout(ctx, r.opts.Answer)
	defer cancel()
	body, err := schemas.Marshal(&schemas.Report{
		Kind: schemas.ReportLost, Token: task.Token, TaskSequence: t.Seq, Redelivered: true,
		Nonce: nonce, ReplyTo: inbox,
	})
	if err != nil {
		return "", err
	}
	if _, err := conn.PublishSync(ctx, task.Report, nil, body); err != nil {
		return "", err
	}
	select {
	case p := <-answers:
		if p.Done == schemas.LostReverted || p.Done == schemas.LostFailed {
			r.opts.Logger.WithFields(logrus.Fields{
				"workflow": task.WorkflowID, "run": task.Run, "task": task.ActivityID,
				"attempt": task.Attempt, "list": task.List,
			}).
				Infof("the worker of an activity is lost: %s", p.Done)
		}
		return p.Done, nil
	case <-ctx.Done():
		r.silent[partition] = true
		return "", fmt.Errorf("%w: the owner of workflow %q has not answered about activity %q",
			natsconn.ErrTimeout, task.WorkflowID, task.ActivityID)
	}
}

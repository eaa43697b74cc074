package windows

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// A node looks whether somebody has used the list of the service, often at first and then each
	// listEvery.
	listSoon  = time.Second
	listEvery = 10 * time.Second
	// onceLimit is how long an attempt asks the bucket that does not answer.
	onceLimit = time.Minute
	// drainTimeout is how long an activity may go on after the end: it asks the bucket once.
	drainTimeout = 5 * time.Second
)

// work carries out activities of the type drover.once on the list of the service, until ctx ends.
// The list is made by its first task; before that there is nothing to wait for.
func (w *Windows) work(ctx context.Context) {
	for began := time.Now(); ctx.Err() == nil; {
		err := w.workOn(ctx)
		if err != nil && !errors.Is(err, natsconn.ErrNoStream) && ctx.Err() == nil {
			w.o.Logger.WithField("err", err).
				Warn("the task list of the service is not worked on; trying again")
		}
		sleep.For(ctx, min(max(time.Since(began)/6, listSoon), listEvery))
	}
}

func (w *Windows) workOn(ctx context.Context) error {
	if _, err := w.o.Conn.StreamTime(ctx, w.o.Namespace.StreamTasks(ops.ServiceList)); err != nil {
		return err
	}
	a := activity.New(w.o.Conn, &activity.Options{
		Namespace: string(w.o.Namespace), Lists: []string{ops.ServiceList},
		Identity: w.o.Node + " (service)", Concurrency: atOnce, DrainTimeout: drainTimeout,
		Logger: w.o.Logger,
	})
	activity.Register(a, ops.ActivityOnce, w.once)
	return a.Run(ctx)
}

// once is the activity. Its caller is the activity as it was scheduled: a second attempt is the
// same caller.
func (w *Windows) once(ctx context.Context, q ops.OnceRequest) (*ops.OnceResponse, error) {
	info := activity.Info(ctx)
	q.Caller, q.WorkflowID, q.Run = info.IdempotencyKey, info.WorkflowID, info.Run
	a, err := w.Once(ctx, &q)
	for began := time.Now(); passing(err) && time.Since(began) < onceLimit && sleep.For(ctx, again) == nil; {
		a, err = w.Once(ctx, &q)
	}
	if e, ok := errors.AsType[*schemas.Error](err); ok && e.Code == schemas.CodeInvalid {
		return nil, activity.Fail(activity.ReasonBadInput, e.Error())
	}
	if err != nil {
		return nil, err
	}
	return a, w.o.Before("answer " + q.Name)
}

// passing tells whether it may help to ask again.
func passing(err error) bool {
	e, ok := errors.AsType[*schemas.Error](err)
	return err != nil && (!ok || e.Code == schemas.CodeUnavailable)
}

package replays

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/schemas"
)

// prepare reads the old run and asks its decider, off the loop, and begins the new run.
func (rs *Replays) prepare(y *replay, reply func(any)) {
	select {
	case rs.Env.Replays <- struct{}{}:
	default:
		reply(y.refuse(schemas.Errorf(schemas.CodeUnavailable, "%d replays are being prepared",
			env.MostReplays).WithHint("try again with the same request id")))
		return
	}
	rs.Env.Work.Go(func() {
		defer func() { <-rs.Env.Replays }()
		ctx, cancel := context.WithTimeout(rs.Env.Background, env.ReadTimeout)
		defer cancel()
		err := rs.compose(ctx, y)
		rs.Loop.Post(func() {
			refused, ok := errors.AsType[*schemas.Error](err)
			switch {
			case rs.host.Sealed(): // the next owner has the request
			case ok:
				reply(y.refuse(refused))
			case err != nil:
				reply(y.refuse(env.Unavailable(err)))
			case y.done:
				reply(y.answer(y.run, false))
			case y.q.DryRun:
				reply(y.answer("", false))
			default:
				rs.begin(y, reply)
			}
		})
	})
}

// compose finds out what the new run begins with.
func (rs *Replays) compose(ctx context.Context, y *replay) error {
	_, err := rs.Env.Reads.LastBySubject(ctx, rs.Env.NS.StreamHistory(rs.Partition),
		rs.Env.NS.History(rs.Partition, y.q.WorkflowID, y.run))
	if err == nil {
		y.done = true
		return nil
	}
	if !errors.Is(err, natsconn.ErrNotFound) {
		return err
	}
	target := y.latest
	if y.q.Run != "" {
		target = y.q.Run
	}
	l, err := rs.host.LoadRun(ctx, y.q.WorkflowID, target)
	switch {
	case err != nil:
		return err
	case l == nil:
		return schemas.Errorf(schemas.CodeNotFound,
			"workflow %q has no run %s: it never had one, or the run is gone by its retention",
			y.q.WorkflowID, target).
			InField("run").About(y.q.WorkflowID, target).
			WithHint("see which are there with: drover list --id %s", y.q.WorkflowID)
	}
	y.old = l.State
	switch next := explain.Result(l.State).NewRun; {
	case !l.State.Closed():
		return schemas.Errorf(schemas.CodeConflict,
			"run %s of workflow %q is %s: a run is replayed once it has ended",
			target, y.q.WorkflowID, l.State.Status).About(y.q.WorkflowID, target)
	case next != "":
		return schemas.Errorf(schemas.CodeConflict, "run %s of workflow %q has continued as run %s",
			target, y.q.WorkflowID, next).
			InField("run").About(y.q.WorkflowID, target).WithHint("replay that one")
	case l.State.Keeping() != nil && l.State.Keeping().Disabled:
		return schemas.Errorf(schemas.CodeConflict,
			"the retention of run %s of workflow %q is disabled: it is not kept once it has "+
				"ended, and cannot be replayed", target, y.q.WorkflowID).
			About(y.q.WorkflowID, target).WithHint("begin anew with: drover start %s --id %s",
			l.State.Start.WorkflowType, y.q.WorkflowID)
	case l.State.Status == schemas.StatusCompleted && y.from() == schemas.ReplayFromEnd:
		y.run, y.done, y.plan = target, true, &schemas.ReplayPlan{From: schemas.ReplayFromEnd}
		return nil
	}
	if err := rs.ask(ctx, y); err != nil || y.q.DryRun {
		return err
	}
	return rs.ownInput(ctx, y)
}

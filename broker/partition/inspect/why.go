package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/bucketkey"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// situation is what this owner knows of a run in memory beside its state.
func (ins *Inspector) situation(r *actor.Run) *explain.Situation {
	in := &explain.Situation{
		Now: ins.Env.Now(), Namespace: ins.Env.Options.Namespace, Config: ins.Env.Config(),
		Lock: ins.Env.Locks.Get, Reasks: r.Decider.Reasks, NoPoller: r.Decider.Asking.NoPoller(),
		BackingUp: r.Decider.BackingOff,
	}
	if r.Decider.Asking.Open() {
		in.Asked, in.AskedAt, in.Confirmed = true, r.Decider.Ask.At, r.Decider.Asking.Confirmed()
	}
	return in
}

// why answers what a run waits for. If that is a worker, it looks first how the list stands; if
// another attempt, how the last one went.
func (ins *Inspector) why(r *actor.Run, reply func(any)) {
	in := ins.situation(r)
	a := &schemas.WhyResponse{V: schemas.Version, Run: r.State.Run, Status: r.State.Status}
	a.Because = explain.Why(r.State, in) + ins.host.DeadLetter(r.State)
	add := func(clause string) {
		a.Because += clause
		reply(a)
	}
	if task := explain.WaitsForWorker(r.State, a.Because, in.Now); task != nil {
		ins.whyTaskList(task, add)
		return
	}
	if t := explain.TriesOf(r.State, in); t != nil {
		ins.whyFailed(r.WorkflowID, a.Run, t, add)
		return
	}
	ins.whyAlwaysOn(r.State, add)
}

// whyTaskList tells how the list of a task stands that no worker has taken.
func (ins *Inspector) whyTaskList(task *schemas.ActivityScheduled, tell func(clause string)) {
	list, consumer := task.List, subject.ConsumerOf(task.TaskPriority)
	env.ReadAsync(ins.Env, ins.Loop, func(ctx context.Context) (*schemas.TaskListInfo, error) {
		i := &schemas.TaskListInfo{List: list}
		exists, err := ins.Env.WorkersOf(ctx, i)
		if err != nil || !exists {
			return nil, err
		}
		if len(i.Missing) > 0 {
			ins.Env.LookAtList(list, 0)
		}
		i.Missing = slices.DeleteFunc(i.Missing, func(name string) bool { return name != consumer })
		return i, nil
	}, func(i *schemas.TaskListInfo, err error) {
		if err != nil {
			ins.Log.WithError(err).WithField("list", list).Debug("how the list stands is not known")
		}
		if refused := ins.host.ListRefusal(list); i == nil && err == nil && refused != nil {
			tell(fmt.Sprintf("; the list cannot be made: %v", refused))
		} else {
			tell(explain.TaskList(i))
		}
	})
}

// whyFailed tells how the last attempt went of what a run tries again.
func (ins *Inspector) whyFailed(wid, run string, t *explain.Tries, tell func(clause string)) {
	env.ReadAsync(ins.Env, ins.Loop, func(ctx context.Context) (string, error) {
		return failed(ins.Env, ctx, ins.Partition, wid, run, t)
	}, func(clause string, err error) {
		if err != nil {
			ins.Log.WithError(err).WithField("workflow", wid).
				Debug("how the last attempt went is not known")
		}
		tell(clause)
	})
}

// failed tells how the last attempt went, where the last record of the run says so. It is one read,
// however long the history is; what has failed before something else happened is left to "drover
// history".
func failed(
	b *env.Env, ctx context.Context, partition int, wid, run string, t *explain.Tries,
) (string, error) {
	subj := b.NS.History(partition, wid, run)
	m, err := b.Reads.LastBySubject(ctx, b.NS.StreamHistory(partition), subj)
	if err != nil {
		return "", fmt.Errorf("read the end of %s: %w", subj, err)
	}
	var r schemas.Record
	if !runs.IsRecord(m) {
		return "", nil
	}
	if err := schemas.Unmarshal(m.Data, &r); err != nil {
		return "", fmt.Errorf("record %d of %s: %w; run drover verify", m.Seq, subj, err)
	}
	return t.Last(r.Events), nil
}

// whyAlwaysOn tells of a closed run of an always-on workflow when the next one begins, or why none
// does. What is not known then is left out.
func (ins *Inspector) whyAlwaysOn(s *execution.State, tell func(clause string)) {
	if mode := s.Start.Mode(); !s.Closed() ||
		mode != schemas.ModeAutoStart && mode != schemas.ModeContinuation {
		tell("")
		return
	}
	wid, run := s.WorkflowID, s.Run
	env.ReadAsync(ins.Env, ins.Loop, func(ctx context.Context) (*ops.AlwaysOnRecord, error) {
		return alwaysOn(ins.Env, ctx, wid)
	}, func(r *ops.AlwaysOnRecord, err error) {
		if err != nil {
			ins.Log.WithError(err).WithField("workflow", wid).WithField("run", run).
				Debug("how the always-on workflow stands is not known")
		}
		tell(explain.AlwaysOn(r, ins.Env.Now()))
	})
}

// alwaysOn is the record of an always-on workflow; nil if it is none any more.
func alwaysOn(b *env.Env, ctx context.Context, wid string) (*ops.AlwaysOnRecord, error) {
	body, _, err := b.Reads.KVGet(ctx, b.NS.BucketSchedules(), "always."+bucketkey.Escape(wid))
	if errors.Is(err, natsconn.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := new(ops.AlwaysOnRecord)
	return r, schemas.Unmarshal(body, r)
}

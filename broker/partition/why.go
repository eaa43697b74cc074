package partition

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
func (p *Partition) situation(r *actor.Run) *explain.Situation {
	in := &explain.Situation{
		Now: p.now(), Namespace: p.b.Options.Namespace, Config: p.b.Config(), Lock: p.b.Locks.Get,
		Reasks: r.Decider.Reasks, NoPoller: r.Decider.NoPoller, BackingUp: r.Decider.BackingOff,
	}
	if r.Decider.Ask != nil {
		in.Asked, in.AskedAt, in.Confirmed = true, r.Decider.Ask.At, r.Decider.Ask.Confirmed
	}
	return in
}

// why answers what a run waits for. If that is a worker, it looks first how the list stands; if
// another attempt, how the last one went.
func (p *Partition) why(r *actor.Run, reply func(any)) {
	in := p.situation(r)
	a := &schemas.WhyResponse{V: schemas.Version, Run: r.State.Run, Status: r.State.Status}
	a.Because = explain.Why(r.State, in) + p.letters.Of(r.State)
	add := func(clause string) {
		a.Because += clause
		reply(a)
	}
	if task := explain.WaitsForWorker(r.State, a.Because, in.Now); task != nil {
		p.whyTaskList(task, add)
		return
	}
	if t := explain.TriesOf(r.State, in); t != nil {
		p.whyFailed(r.WorkflowID, a.Run, t, add)
		return
	}
	p.whyAlwaysOn(r.State, add)
}

// whyTaskList tells how the list of a task stands that no worker has taken.
func (p *Partition) whyTaskList(task *schemas.ActivityScheduled, tell func(clause string)) {
	list, consumer := task.List, subject.ConsumerOf(task.TaskPriority)
	env.ReadAsync(p.b, p.loop, func(ctx context.Context) (*schemas.TaskListInfo, error) {
		i := &schemas.TaskListInfo{List: list}
		exists, err := p.b.WorkersOf(ctx, i)
		if err != nil || !exists {
			return nil, err
		}
		if len(i.Missing) > 0 {
			p.b.LookAtList(list, 0)
		}
		i.Missing = slices.DeleteFunc(i.Missing, func(name string) bool { return name != consumer })
		return i, nil
	}, func(i *schemas.TaskListInfo, err error) {
		if err != nil {
			p.log.WithError(err).WithField("list", list).Debug("how the list stands is not known")
		}
		if refused := p.dispatch.ListRefusal(list); i == nil && err == nil && refused != nil {
			tell(fmt.Sprintf("; the list cannot be made: %v", refused))
		} else {
			tell(explain.TaskList(i))
		}
	})
}

// whyFailed tells how the last attempt went of what a run tries again.
func (p *Partition) whyFailed(wid, run string, t *explain.Tries, tell func(clause string)) {
	env.ReadAsync(p.b, p.loop, func(ctx context.Context) (string, error) {
		return failed(p.b, ctx, p.n, wid, run, t)
	}, func(clause string, err error) {
		if err != nil {
			p.log.WithError(err).
				WithField("workflow", wid).
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
func (p *Partition) whyAlwaysOn(s *execution.State, tell func(clause string)) {
	if mode := s.Start.Mode(); !s.Closed() ||
		mode != schemas.ModeAutoStart && mode != schemas.ModeContinuation {
		tell("")
		return
	}
	wid, run := s.WorkflowID, s.Run
	env.ReadAsync(p.b, p.loop, func(ctx context.Context) (*ops.AlwaysOnRecord, error) {
		return alwaysOn(p.b, ctx, wid)
	}, func(r *ops.AlwaysOnRecord, err error) {
		if err != nil {
			p.log.WithError(err).
				WithField("workflow", wid).
				WithField("run", run).
				Debug("how the always-on workflow stands is not known")
		}
		tell(explain.AlwaysOn(r, p.now()))
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

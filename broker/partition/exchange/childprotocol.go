package exchange

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// AboutAnotherRun takes the messages between parents and children that are not for the open run, or
// need another answer before they are.
func (x *Exchange) AboutAnotherRun(r *actor.Run, e *actor.Message) bool {
	owes := false
	switch m := e.Event.(type) {
	case execution.Start:
		if o := m.Request.Origin; o == nil || !o.Probe {
			return false
		}
		x.probed(r, e, m.Request)
	case execution.Child:
		switch c := m.Report; {
		case c.Status == schemas.StatusOpen && r.Live() && c.ParentRun != r.State.Run:
			x.childOfOld(e, c, 1)
			owes = true
		case c.Cause != "" && !c.Final && x.repeatedStarts[c.Child.Run]:
			if !x.probe(r, e, c) {
				return false
			}
			owes = true
		default:
			delete(x.repeatedStarts, c.Child.Run)
			return false
		}
	default:
		return false
	}
	switch {
	case owes:
		x.host.Owe(r, e)
	case r.Live() && e.Log != intake.None:
		r.Positions[e.Log] = e.Position
	}
	e.Completion.Release()
	return true
}

// probe asks again what became of a child that was refused. Its start was sent twice, by this owner
// and by the one before; the refusal may answer the first while the second has begun the child. The
// probe is after both in the child's inbox.
func (x *Exchange) probe(r *actor.Run, e *actor.Message, c *schemas.ChildReport) bool {
	if !r.Live() || r.State.Run != c.ParentRun || r.State.Children[c.ScheduledEventID] == nil {
		return false // it does not matter any more
	}
	q := r.State.ChildStart(r.State.Children[c.ScheduledEventID])
	q.Origin.Probe = true
	x.Tell(q.WorkflowID, actor.KindStart, q, e.Completion)
	return true
}

// probed answers a probe: the child has begun, or nothing that was sent before can begin it any
// more.
func (x *Exchange) probed(r *actor.Run, e *actor.Message, q *schemas.StartRequest) {
	if r.Live() && r.State.Run == q.Run {
		x.AnswerChild(e, q)(r, nil)
		return
	}
	x.ReportOld(e, q, 0)
}

// childOfOld is the start of a child whose parent is not the latest run of its id any more. If that
// was ended by force, the child has missed its policy. A run whose history is damaged is given up
// after so many tries: the open one waits for the answer.
func (x *Exchange) childOfOld(e *actor.Message, c *schemas.ChildReport, tries int) {
	e.Completion.Retain()
	env.ReadAsync(x.Env, x.Loop, func(ctx context.Context) (*runs.Run, error) {
		return x.host.LoadRun(ctx, e.WorkflowID, c.ParentRun)
	}, func(l *runs.Run, err error) {
		switch {
		case errors.Is(err, runs.ErrDamaged) && !errors.Is(err, runs.ErrLater) && tries >= env.DamagedTries:
			x.Log.WithError(err).WithField("workflow", e.WorkflowID).Error(
				"the history of a parent is damaged: a child that began after its end is left alone")
		case err != nil:
			x.Log.WithError(err).WithField("workflow", e.WorkflowID).
				Warn("a parent cannot be looked up; trying again")
			x.Loop.After(env.LoadRetry,
				func() { x.childOfOld(e, c, tries+1); e.Completion.Release() })
			return
		}
		if l != nil && l.State.Closed() {
			_, effects := l.State.Step(x.Env.Config(), e.Event, e.At)
			for _, f := range effects {
				x.Perform(l.State, actor.Effect{Effect: f, Cause: e}, nil)
			}
		}
		e.Completion.Release()
	})
}

package exchange

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// Perform performs the effects that reach other workflows. They go into the inbox of the workflow
// that is meant, whoever owns it; t is held until they are there.
func (x *Exchange) Perform(s *execution.State, e actor.Effect, t *watermark.Completion) {
	switch f := e.Effect.(type) {
	case execution.StartChild:
		if c := s.Children[f.ScheduledID]; c != nil {
			if e.Cause == nil {
				x.repeatedStarts[c.Scheduled.Run] = true
			}
			x.startChild(s, c, t)
		}
	case execution.Request:
		if action := s.Externals[f.ScheduledID]; action != nil {
			kind, target, body := s.RequestOf(action)
			x.Tell(target, kind, body, t)
		}
	case execution.Answer:
		f.Answer.V = schemas.Version
		// What is answered stands in the inbox, not in the state: its place there is kept until the
		// answer is safe.
		x.Tell(f.To.WorkflowID, actor.KindExternal, &f.Answer, e.Cause.Completion)
	case execution.EndChild:
		kind := actor.KindEnd
		if f.Policy == schemas.ChildRequestCancel {
			kind = actor.KindCancel
		}
		x.Tell(f.Child.WorkflowID, kind, &schemas.ExecutionRequest{
			V: schemas.Version, WorkflowID: f.Child.WorkflowID, Run: f.Child.Run,
			Reason: "the parent ended: " + string(s.Status),
			Origin: &schemas.RequestOrigin{
				Execution: &schemas.Execution{WorkflowID: s.WorkflowID, Run: s.Run},
				Cause:     schemas.CauseChildPolicyApplied, FirstRun: f.Child.Run,
			},
		}, t, completionOf(e.Cause))
	case execution.Closed:
		x.reportChild(s, t)
	}
}

// startChild puts the start of a child into its inbox. If it is not known whether it is there, it
// is sent again only while the parent has no answer: after the refusal of the first the second
// might begin a child that nobody expects. Else the refusal may be that of the first while the
// second begins it, as after a take-over, and is probed.
func (x *Exchange) startChild(s *execution.State, c *execution.ChildRun, t *watermark.Completion) {
	q := s.ChildStart(c)
	body, err := schemas.Marshal(q)
	if err != nil {
		x.Log.WithError(err).WithField("workflow", q.WorkflowID).
			Error("the start of a child cannot be encoded")
		return
	}
	t.Retain()
	to := x.Env.NS.In(x.Env.PartitionOf(q.WorkflowID), q.WorkflowID, actor.KindStart)
	x.dispatch.SendUntil(to, "", natsconn.Addressed(to), body, func(uint64) { t.Release() },
		func(again func()) {
			r := x.host.Get(s.WorkflowID)
			x.host.WhenKept(r, func() {
				if r.Live() && r.State.Run == s.Run {
					if now := r.State.Children[c.ScheduledID]; now == nil || now.Started != 0 {
						t.Release()
						return
					}
				}
				x.repeatedStarts[q.Run] = true
				again()
			}, t.Release)
		})
}

func completionOf(e *actor.Message) *watermark.Completion {
	if e == nil {
		return nil
	}
	return e.Completion
}

// Tell puts a message into the inbox of a workflow.
func (x *Exchange) Tell(wid, kind string, v any, completions ...*watermark.Completion) {
	body, err := schemas.Marshal(v)
	if err != nil {
		x.Log.WithError(err).WithField("workflow", wid).
			Error("a message between workflows cannot be encoded")
		return
	}
	for _, t := range completions {
		t.Retain()
	}
	to := x.Env.NS.In(x.Env.PartitionOf(wid), wid, kind)
	x.dispatch.Send(to, "", natsconn.Addressed(to), body, func(uint64) {
		watermark.Release(completions)
	})
}

// reportChild tells the parent of a run where it stands. A run that continued as new is open for
// its parent.
func (x *Exchange) reportChild(s *execution.State, completions ...*watermark.Completion) {
	parent := s.Start.ParentWorkflowExecution
	if parent == nil {
		return
	}
	x.Tell(parent.WorkflowID, actor.KindChild, childReport(s), completions...)
}

func childReport(s *execution.State) *schemas.ChildReport {
	report := &schemas.ChildReport{
		V: schemas.Version, ParentRun: s.Start.ParentWorkflowExecution.Run,
		ScheduledEventID: s.Start.ParentScheduledEventID,
		Child: schemas.Execution{
			WorkflowID: s.WorkflowID,
			Run:        s.Run,
		}, Status: schemas.StatusOpen,
	}
	if s.Closed() && s.Status != schemas.StatusContinuedAsNew {
		end := explain.Result(s)
		report.Status, report.Result, report.Reason, report.Details = s.Status, end.Result, end.Reason, end.Details
	}
	return report
}

// AnswerChild tells a parent what became of the start of its child.
func (x *Exchange) AnswerChild(
	e *actor.Message, q *schemas.StartRequest,
) func(*actor.Run, []schemas.Event) {
	return func(r *actor.Run, _ []schemas.Event) {
		if e.Verdict.Refused != nil {
			x.refuseChild(e, q)
			return
		}
		report := startedReport(q)
		if r.State.Run == q.Run && r.State.Closed() && r.Inflight == nil && len(r.Pending) == 0 {
			report = childReport(r.State)
		}
		x.Tell(q.Origin.Parent.WorkflowID, actor.KindChild, report, e.Completion)
	}
}

// startedReport says that a child has begun. How it ends is told when it does.
func startedReport(q *schemas.StartRequest) *schemas.ChildReport {
	return &schemas.ChildReport{
		V: schemas.Version, ParentRun: q.Origin.Parent.Run,
		ScheduledEventID: q.Origin.ParentScheduledEventID,
		Child: schemas.Execution{
			WorkflowID: q.WorkflowID,
			Run:        q.Run,
		}, Status: schemas.StatusOpen,
	}
}

func (x *Exchange) refuseChild(e *actor.Message, q *schemas.StartRequest) {
	report := startedReport(q)
	report.Status, report.Cause, report.Final = "", schemas.CauseWorkflowRunning, q.Origin.Probe
	x.Tell(q.Origin.Parent.WorkflowID, actor.KindChild, report, e.Completion)
}

// AnswerChildLate answers a child's start that was read again after a take-over: the history tells
// what became of it (P-5).
func (x *Exchange) AnswerChildLate(r *actor.Run, e *actor.Message, q *schemas.StartRequest) {
	if r.State.Run == q.Run {
		x.AnswerChild(e, q)(r, nil)
		return
	}
	x.ReportOld(e, q, 0)
}

// ReportOld tells a parent about a child that is not the latest run of its id: it has closed, or it
// never began.
//
// tries is how often that was tried before.
func (x *Exchange) ReportOld(e *actor.Message, q *schemas.StartRequest, tries int) {
	e.Completion.Retain()
	env.ReadAsync(x.Env, x.Loop, func(ctx context.Context) (*runs.Run, error) {
		return x.host.LoadRun(ctx, q.WorkflowID, q.Run)
	}, func(l *runs.Run, err error) {
		switch {
		case errors.Is(err, runs.ErrDamaged) && !errors.Is(err, runs.ErrLater) && tries >= env.DamagedTries:
			x.host.Bury(e, dead.ReasonDamaged, err.Error())
		case err != nil:
			x.Log.WithError(err).WithField("workflow", q.WorkflowID).
				Warn("a child cannot be looked up; trying again")
			x.Loop.After(env.LoadRetry,
				func() { x.ReportOld(e, q, tries+1); e.Completion.Release() })
			return
		case l == nil:
			x.refuseChild(e, q)
		default:
			x.Tell(q.Origin.Parent.WorkflowID, actor.KindChild, childReport(l.State), e.Completion)
		}
		e.Completion.Release()
	})
}

// AnswerUnknown tells the sender of a signal or cancel request that nobody is there.
func (x *Exchange) AnswerUnknown(e *actor.Message, source schemas.Execution, event int64) {
	x.Tell(source.WorkflowID, actor.KindExternal, &schemas.ExternalAnswer{
		V: schemas.Version, SourceRun: source.Run, ScheduledEventID: event,
		Target: schemas.Execution{WorkflowID: e.WorkflowID},
		Cause:  schemas.CauseUnknownExecution,
	}, e.Completion)
}

// Control tells a worker that an activity is not wanted any more. Nothing waits for it: the answer
// to a heartbeat says the same.
func (x *Exchange) Control(f execution.CancelRunning) {
	body, err := json.Marshal(&schemas.Control{
		V: schemas.Version, Kind: schemas.ControlCancel, Token: f.Token, Reason: f.Reason,
		Gone: f.Gone,
	})
	if err == nil {
		err = x.Env.Conn.Publish(x.Env.NS.Control(f.Worker), nil, body)
	}
	if err != nil {
		x.Log.WithError(err).Debug("a worker cannot be told; its next heartbeat will")
	}
}

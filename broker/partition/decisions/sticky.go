package decisions

import (
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/schemas"
)

// mostPreferred is how many questions of a partition may be open when a run that nobody has in
// memory, by what is known, is given to one worker: if there are more, that one may be busy and
// others idle.
const mostPreferred = 64

// stick notes which worker wants the run's next tasks. An answer that a former owner has passed on
// does not say that its worker is there: it may have left before this owner listened.
func (ds *Decisions) stick(r *actor.Run, reply *schemas.DecisionReply, firstHand bool) {
	if firstHand {
		r.Decider.Sticky = ds.Deciders.Workers.Answered(r.State.Start.WorkflowType, reply)
	} else {
		r.Decider.Sticky = ds.Deciders.Workers.PassedOn(reply)
	}
}

// avoid sees to it that a worker whose code does not fit the history is not asked again because it
// has the run: a named one that says so first makes room for another that is known, and after that
// whoever listens is asked.
func (ds *Decisions) avoid(r *actor.Run, reply *schemas.DecisionReply, asked string) {
	if reply.Error == nil || reply.Error.Cause != schemas.CauseNonDeterministic {
		return
	}
	r.Decider.Sticky = ""
	if asked != "" && r.State.Decision.Mismatches == 0 {
		r.Decider.Sticky = ds.Deciders.Workers.Other(r.State.Start.WorkflowType, asked)
	}
}

// Remember makes a run sticky that has left the memory: its worker has not forgotten it, perhaps,
// and is asked in the short encoding.
func (ds *Decisions) Remember(r *actor.Run, number uint64) {
	if name := ds.Deciders.Workers.Remembers(number); name != "" {
		r.Decider.Sticky, r.Decider.Slept = name, true
	}
}

// route settles whom a decision task is for before it is sent: r.sticky, or the shared queue if
// that is empty. A run that has left the memory goes back to its worker, and the first task of a
// run to the worker whose turn it is, while few questions are open and its record waits for the
// answer (defer.go) after another that came in time. With slow deciders it would stand in line with
// one worker while others are idle.
func (ds *Decisions) route(r *actor.Run, waits bool) {
	d, typ := &r.State.Decision, r.State.Start.WorkflowType
	prefers := waits && !ds.Deciders.Deferrals.Failing(typ) && len(ds.Asks) < mostPreferred
	if r.Decider.Slept && !prefers {
		r.Decider.Sticky = ""
	}
	r.Decider.Slept = false
	if !prefers || r.Decider.Sticky != "" || d.Previous != 0 || d.Failures != 0 {
		return
	}
	r.Decider.Sticky = ds.Deciders.Workers.First(typ)
}

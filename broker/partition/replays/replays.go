package replays

import (
	"context"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/internal/runid"
	"github.com/droverhq/drover/schemas"
)

// Host is the partition as this package needs it. Its methods are called on the loop, except
// LoadRun.
type Host interface {
	// Sealed tells whether the owner changes nothing any more.
	Sealed() bool
	// Get returns the run of a workflow id, loading it if need be.
	Get(wid string) *actor.Run
	// WhenSound calls f once the run is loaded; if its history is damaged, it answers with a refusal.
	WhenSound(r *actor.Run, reply func(any), f func())
	// AfterPending calls f once all that is in memory of the run is in the history.
	AfterPending(r *actor.Run, f func())
	Deliver(r *actor.Run, e *actor.Message)
	// LoadRun reads one run of a workflow id from its history; nil if there is none.
	LoadRun(ctx context.Context, wid, run string) (*runs.Run, error)
}

// Replays answers the requests for replays of a partition.
type Replays struct {
	env.Owner
	host Host
}

// New returns the replays of a new owner.
func New(host Host, o env.Owner) *Replays {
	return &Replays{host: host, Owner: o}
}

// Answer takes a request at the owner of the workflow id.
func (rs *Replays) Answer(q *schemas.ReplayRequest, force bool, reply func(any)) {
	r := rs.host.Get(q.WorkflowID)
	rs.host.WhenSound(r, reply, func() {
		if !r.Live() {
			reply(&schemas.ReplayResponse{
				V: schemas.Version, WorkflowID: q.WorkflowID,
				Error: env.NotFound(q.WorkflowID, q.Run),
			})
			return
		}
		y := &replay{q: q, force: force, latest: r.State.Run}
		y.run = runid.OfRequest(q.WorkflowID, y.requestID())
		open := !r.Closed()
		status := r.State.Status
		keeping := r.State.Keeping()
		rs.host.AfterPending(r, func() { // what it is judged by is in the history
			switch {
			case y.latest == y.run:
				reply(y.answer(y.run, false))
			case q.LatestOnly && q.Run != "" && q.Run != y.latest:
				reply(y.refuse(schemas.Errorf(schemas.CodeConflict,
					"run %s is not the latest of workflow %q: that is run %s (%s)",
					q.Run, q.WorkflowID, y.latest, status).
					InField("run").About(q.WorkflowID, y.latest)))
			case open:
				reply(y.refuse(schemas.Errorf(schemas.CodeConflict,
					"workflow %q is %s, as run %s: a run is replayed once it has ended",
					q.WorkflowID, status, y.latest).
					About(q.WorkflowID, y.latest).
					WithHint("wait for its end, or end it with: drover cancel %s, or "+
						"drover terminate %s", q.WorkflowID, q.WorkflowID)))
			case keeping != nil && keeping.Disabled && (q.Run == "" || q.Run == y.latest):
				reply(y.refuse(schemas.Errorf(schemas.CodeConflict,
					"the retention of run %s is disabled, so it is about to be purged "+
						"and is never replayed", y.latest).InField("run").
					About(q.WorkflowID, y.latest).
					WithHint("start it anew with: drover start; write retention 0 " +
						"instead of disabled for runs that may be replayed")))
			default:
				rs.prepare(y, reply)
			}
		})
	})
}

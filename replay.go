package drover

import (
	"cmp"
	"context"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/schemas"
)

// ReplayOptions of [Run.Replay].
type ReplayOptions struct {
	// From is where the new run begins: "start", "last" for the replay point that was passed last,
	// "end" for where the run stood, or a step of a flow: its id, its index, or its ref such as
	// 2.steps.0. Defaults to "end".
	From string
	// Force ignores idempotence, replay points and replayable: disabled. It needs the right to
	// api.replayForce. Defaults to false.
	Force bool
	// Reason goes into the history of the new run; at most [schemas.MaxReplayReason] bytes.
	// Defaults to none.
	Reason string
	// RequestID makes the replay idempotent beyond this call: a repeat returns the same run.
	// Defaults to a new one for each call.
	RequestID string
	// DryRun tells what would run again, and begins nothing. Defaults to false.
	DryRun bool
	// LatestOnly refuses the replay of a run that is not the latest of its workflow id. Defaults to
	// false.
	LatestOnly bool
}

// Replayed is what [Run.Replay] returns.
type Replayed struct {
	// Run is the new run. If there was nothing to do it is the one that was to be repeated; nil for
	// a dry run.
	Run *Run
	// Replays is the run that is repeated; empty if the answer is that of an earlier call.
	Replays string
	// Plan is what runs again; nil if the answer is that of an earlier call.
	Plan *schemas.ReplayPlan
}

// Replay begins a new run of the workflow id that repeats this one, which must have ended; without
// RunID the latest. The outcome of the id is that of the new run then. Runs of flows begin with the
// variables of the place, runs of other deciders with the same input and from "start" only.
// [Run.Started] of the new run is false if nothing was begun: a run that has completed has nothing
// to do from "end". nil options mean all defaults.
//
// Errors: [ErrNotFound], also if the run is gone by its retention; [ErrConflict] if it is open or
// cannot be replayed from there; [ErrAlreadyStarted] if another run of the id began meanwhile;
// [ErrInvalid], [ErrPermission], [ErrUnavailable], [ErrTimeout].
func (r *Run) Replay(ctx context.Context, o *ReplayOptions) (*Replayed, error) {
	var opts ReplayOptions
	if o != nil {
		opts = *o
	}
	verb := "replay"
	if opts.Force {
		verb = "replayForce"
	}
	q, err := r.query(verb, 0)
	if err != nil {
		return nil, err
	}
	req := &schemas.ReplayRequest{
		V: schemas.Version, WorkflowID: r.ID, Run: r.RunID, From: opts.From, DryRun: opts.DryRun,
		LatestOnly: opts.LatestOnly, RequestID: cmp.Or(opts.RequestID, ulid.Make().String()),
		Reason: opts.Reason, Identity: r.client.name,
	}
	if err := req.Validate(); err != nil {
		return nil, newError(q, err)
	}
	out, err := call(ctx, r.client, q, req,
		func(a *schemas.ReplayResponse) *schemas.Error { return a.Error })
	if err != nil {
		return nil, err
	}
	a := &Replayed{Replays: out.Replays, Plan: out.Plan}
	if !opts.DryRun {
		a.Run = r.client.Run(r.ID, out.Run)
		a.Run.started = out.Started
	}
	return a, nil
}

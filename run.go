package drover

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// Run is a handle to one execution. It holds nothing of its state; make as many as you like with
// [Client.Run].
type Run struct {
	// ID is the workflow id.
	ID string
	// RunID is the run's id, which has the form of a ULID. Empty means the open run, or else the
	// latest.
	RunID string

	client  *Client
	started bool
}

// Started tells whether the call that returned this handle began the run. It is false for one that
// was found open by [schemas.ConflictUseExisting] or a signal, for the run of an earlier request
// with the same id, and for handles of [Client.Run].
func (r *Run) Started() bool { return r.started }

// Run returns a handle without asking anybody. An empty runID means the open run of the workflow
// id, or else the latest, at the time of each call.
func (c *Client) Run(id, runID string) *Run { return &Run{ID: id, RunID: runID, client: c} }

// Outcome is how a run ended.
type Outcome struct {
	// ID and Run name the execution; Run is the last of a chain that continued as new.
	ID, Run string
	// Status is completed, failed, canceled, terminated or timedOut.
	Status schemas.Status
	// Result is the payload of a completed run.
	Result schemas.Payload
	// Reason and Details are those of a run that did not complete.
	Reason  string
	Details schemas.Payload
	// Soft tells that the run is purged from disk, and was remembered by the master of the
	// namespace.
	Soft bool
}

// Err is nil for a completed run, else a [*WorkflowError].
func (o *Outcome) Err() error {
	if o.Status == schemas.StatusCompleted {
		return nil
	}
	return &WorkflowError{
		ID: o.ID, Run: o.Run, Status: o.Status, Reason: o.Reason, Details: o.Details,
	}
}

// Result waits until the run has ended and decodes its result from JSON into out; pointers to bytes
// take the payload as it is, and nil takes nothing. A run that continued as new is followed to its
// successor.
//
// A run that did not complete is a [*WorkflowError]. Other errors: [ErrInvalid] if the result does
// not fit out, [ErrNotFound], [ErrUnavailable], [ErrTimeout], and ctx's own. Give ctx a deadline,
// or Result waits as long as the run does.
func (r *Run) Result(ctx context.Context, out any) error {
	o, err := r.Wait(ctx)
	if err != nil {
		return err
	}
	if err := o.Err(); err != nil {
		return err
	}
	if err := decode(o.Result, out); err != nil {
		return newError(query{verb: "result", id: o.ID, run: o.Run},
			fmt.Errorf("%w: %w", errDecode, err))
	}
	return nil
}

// Wait is like [Run.Result], but it returns any end as an [Outcome], a failure too.
func (r *Run) Wait(ctx context.Context) (*Outcome, error) {
	q, err := r.query("result", hold)
	if err != nil {
		return nil, err
	}
	wait := firstBackoff
	for {
		asked := time.Now()
		req := &schemas.ExecutionRequest{
			V: schemas.Version, WorkflowID: r.ID, Run: q.run, Wait: holds(ctx),
			Inline: natsconn.BulkBytes,
		}
		out, err := call(ctx, r.client, q, req, resultRefusal)
		if err == nil && out.Large > 0 {
			req.Run, req.Wait, req.Inline = cmp.Or(out.Run, q.run), 0, 0
			out, err = call(ctx, r.client,
				query{verb: q.verb, id: q.id, run: req.Run, answer: out.Large}, req, resultRefusal)
		}
		if err != nil {
			return nil, err
		}
		// From here on the answer is about one run, whatever else is started under the id
		// meanwhile.
		q.run, q.open = cmp.Or(out.Run, q.run), time.Now()
		switch {
		case out.Status == schemas.StatusContinuedAsNew && out.NewRun != "" && out.NewRun != q.run:
			q.run, wait = out.NewRun, firstBackoff
		case out.Status.Closed():
			return r.outcome(ctx, q, out)
		case time.Since(asked) < hold/2:
			// The server did not hold the answer back: do not spin.
			if sleep.For(ctx, wait) != nil {
				return nil, newError(q, outlived(ctx, ctx.Err()))
			}
			wait = min(2*wait, lastBackoff)
		}
	}
}

func resultRefusal(a *schemas.ResultResponse) *schemas.Error { return a.Error }

func (r *Run) outcome(ctx context.Context, q query, out *schemas.ResultResponse) (*Outcome, error) {
	q.hold, q.open = 0, time.Time{}
	result, err := r.client.resolve(ctx, q, out.Result)
	if err != nil {
		return nil, err
	}
	details, err := r.client.resolve(ctx, q, out.Details)
	if err != nil {
		return nil, err
	}
	return &Outcome{
		ID: r.ID, Run: q.run, Status: out.Status, Result: result, Reason: out.Reason,
		Details: details, Soft: out.Soft,
	}, nil
}

// Describe tells all about the execution but its history: status, open activities and timers,
// owner, deadlines.
func (r *Run) Describe(ctx context.Context) (*schemas.DescribeResponse, error) {
	return ask1(ctx, r, "describe",
		func(a *schemas.DescribeResponse) *schemas.Error { return a.Error })
}

// Why tells in one sentence what the execution waits for.
func (r *Run) Why(ctx context.Context) (string, error) {
	out, err := ask1(ctx, r, "why", func(a *schemas.WhyResponse) *schemas.Error { return a.Error })
	if err != nil {
		return "", err
	}
	return out.Because, nil
}

// Retention tells how long the run is kept after its end, by what it is judged, and why it is still
// there. The master of the namespace answers, so a server with the role ops must run.
//
// Errors: [ErrNotFound], [ErrUnavailable], [ErrTimeout].
func (r *Run) Retention(ctx context.Context) (*schemas.RetentionResponse, error) {
	return ask1(ctx, r, "retention",
		func(a *schemas.RetentionResponse) *schemas.Error { return a.Error })
}

// ask1 asks a verb that takes nothing but the execution.
func ask1[Answer any](
	ctx context.Context, r *Run, verb string, refusal func(*Answer) *schemas.Error,
) (*Answer, error) {
	q, err := r.query(verb, 0)
	if err != nil {
		return nil, err
	}
	req := &schemas.ExecutionRequest{V: schemas.Version, WorkflowID: r.ID, Run: r.RunID}
	return call(ctx, r.client, q, req, refusal)
}

// Signal hands a named signal to the open run of the workflow id, whatever RunID says. The input is
// encoded as in [Client.Start]. When it returns nil the signal is stored: it will be once in the
// history, or in the dead letters if the run closes first. Errors: [ErrNotFound], [ErrClosed],
// [ErrLimit] if there is no room for more, [ErrInvalid], [ErrTooLarge], [ErrUnavailable],
// [ErrTimeout].
func (r *Run) Signal(ctx context.Context, name string, input any) error {
	q, err := r.query("signal", 0)
	if err != nil {
		return err
	}
	q.run = ""
	if err := subject.ValidateID("signal name", name); err != nil {
		return newError(q, err)
	}
	payload, err := encode("input", input)
	if err != nil {
		return newError(q, err)
	}
	if err := r.client.spill(ctx, q, "input", &payload); err != nil {
		return err
	}
	req := &schemas.SignalRequest{
		V: schemas.Version, WorkflowID: r.ID, Name: name, Input: payload,
		RequestID: ulid.Make().String(),
	}
	_, err = call(ctx, r.client, q, req,
		func(a *schemas.SignalResponse) *schemas.Error { return a.Error })
	return err
}

// Pause stops asking the run's decider; events still come in. The reason goes into the history. A
// pause of a run that is paused changes nothing.
//
// Errors, also of [Run.Resume]: [ErrNotFound], [ErrClosed], [ErrUnavailable], [ErrTimeout].
func (r *Run) Pause(ctx context.Context, reason string) error {
	return r.operate(ctx, "pause", schemas.ExecutionRequest{Reason: reason})
}

// Resume undoes a pause, also that of a run which was parked after its decider failed too often.
func (r *Run) Resume(ctx context.Context, reason string) error {
	return r.operate(ctx, "resume", schemas.ExecutionRequest{Reason: reason})
}

// Hold keeps the run from being asked to continue as new by its continuation policy, as while
// somebody looks at it. The run that follows it in its chain is held too. The reason goes into the
// history. A hold of a run that is held changes nothing.
//
// Errors, also of [Run.Release]: [ErrNotFound], [ErrClosed], [ErrUnavailable], [ErrTimeout].
func (r *Run) Hold(ctx context.Context, reason string) error {
	return r.operate(ctx, "hold", schemas.ExecutionRequest{Reason: reason})
}

// Release undoes a hold.
func (r *Run) Release(ctx context.Context, reason string) error {
	return r.operate(ctx, "release", schemas.ExecutionRequest{Reason: reason})
}

// operate sends an operator's request.
func (r *Run) operate(ctx context.Context, verb string, req schemas.ExecutionRequest) error {
	q, err := r.query(verb, 0)
	if err != nil {
		return err
	}
	if q.run, err = r.current(ctx, q); err != nil {
		return err
	}
	if err := r.client.spill(ctx, q, "details", &req.Details); err != nil {
		return err
	}
	req.V, req.WorkflowID, req.Run = schemas.Version, r.ID, q.run
	req.Chain = r.RunID == "" // it may continue as new meanwhile
	req.RequestID, req.Identity = ulid.Make().String(), r.client.name
	_, err = call(ctx, r.client, q, &req,
		func(a *schemas.AckResponse) *schemas.Error { return a.Error })
	return err
}

// query checks the ids before they travel.
func (r *Run) query(verb string, hold time.Duration) (query, error) {
	q := query{verb: verb, id: r.ID, run: r.RunID, hold: hold}
	if err := subject.ValidateID("workflow id", r.ID); err != nil {
		return q, newError(q, err)
	}
	if r.RunID != "" {
		if err := subject.ValidateID("run id", r.RunID); err != nil {
			return q, newError(q, err)
		}
	}
	return q, nil
}

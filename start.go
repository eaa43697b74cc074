package drover

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/runid"
	"github.com/droverhq/drover/schemas"
)

// Unlimited switches a timeout of [StartOptions] off, even where the service has a default.
const Unlimited time.Duration = -1

// StartOptions of [Client.Start]. The zero value takes the defaults of the service. Durations: 0 is
// the default, [Unlimited] none.
type StartOptions struct {
	// ID is the workflow id: 1 to 256 bytes of text without control characters. While a run of it
	// is open, another start is refused with [ErrAlreadyStarted]. Defaults to an id that is made of
	// the RequestID, or else to a new ULID.
	ID string
	// RequestID makes the start idempotent beyond this call: a start with the request id of an
	// earlier one of the same workflow id returns that one's run, also when it has closed. Defaults
	// to a new one for each call.
	RequestID string
	// TypeVersion is handed to the decider with the type. Defaults to none.
	TypeVersion string
	// Timeout bounds the whole run. Defaults to one year.
	Timeout time.Duration
	// DecisionTimeout bounds one answer of a decider. Defaults to 10 s.
	DecisionTimeout time.Duration
	// DecisionWait bounds how long a decision waits for a decider. Defaults to no limit.
	DecisionWait time.Duration
	// Priority is written into the history with each decision task. It changes no order. Defaults
	// to 0.
	Priority int
	// ActivityDefaults are what activities take where their decision says nothing. Defaults to
	// none.
	ActivityDefaults *schemas.ActivityDefaults
	// ChildPolicy says what becomes of children when this run is terminated or times out:
	// [schemas.ChildTerminate], [schemas.ChildRequestCancel] or [schemas.ChildAbandon]. Defaults to
	// that of the registered type, else to ChildTerminate.
	ChildPolicy schemas.ChildPolicy
	// Tags and Attributes are shown in lists: at most five tags, and 32 KiB of attributes.
	Tags       []string
	Attributes map[string]string
	// ReusePolicy says whether the id of a run that has closed may be used again:
	// [schemas.ReuseAllow], [schemas.ReuseAllowFailed] or [schemas.ReuseReject]. A refused start is
	// [ErrAlreadyStarted]. Defaults to ReuseAllow.
	ReusePolicy schemas.IDReusePolicy
	// ConflictPolicy says what happens if a run of the id is open: [schemas.ConflictFail],
	// [schemas.ConflictUseExisting] or [schemas.ConflictTerminateExisting]. Defaults to
	// ConflictFail, and to ConflictUseExisting with a signal.
	ConflictPolicy schemas.IDConflictPolicy
	// Mode says what begins the run: [schemas.ModeManual], [schemas.ModeSchedule] or
	// [schemas.ModeAutoStart]. Defaults to ModeManual.
	Mode schemas.StartMode
	// Continuation says when the run is asked to continue as new: see [schemas.ContinuationPolicy].
	// Defaults to never.
	Continuation *schemas.ContinuationPolicy
	// NotAfter is when the start is refused, with [ErrConflict], if it has begun nothing by then. A
	// repeat of one that has begun a run is answered all the same. Defaults to no limit.
	NotAfter time.Time
}

// Start starts a workflow of a type and returns its run. The input is JSON, unless it is bytes
// ([]byte, json.RawMessage or [schemas.Payload]), which travel as they are; nil is none. When Start
// returns, the run is in the log of the service and survives what the durability profile promises.
//
// Errors: [ErrAlreadyStarted] if a run of the id is open or the id may not be used again,
// [ErrNotFound] if the namespace demands registered types and this is none, [ErrDeprecated] if it
// is deprecated, [ErrLimit] if there is no room for more, [ErrInvalid], [ErrTooLarge],
// [ErrUnavailable], [ErrTimeout]. After the last two it is unknown whether the run exists; a repeat
// with the same RequestID finds out.
func (c *Client) Start(ctx context.Context, typ string, input any, o *StartOptions) (*Run, error) {
	var opts StartOptions
	if o != nil {
		opts = *o
	}
	switch {
	case opts.ID != "":
	case opts.RequestID != "":
		// a repeat means the same workflow, and the service would give it the same id
		opts.ID = runid.OfRequest("", opts.RequestID)
	default:
		opts.ID = ulid.Make().String()
	}
	req, err := c.startRequest(typ, input, opts)
	q := query{verb: "start", id: opts.ID}
	if err != nil {
		return nil, newError(q, err)
	}
	return c.start(ctx, q, req)
}

// SignalWithStart signals the open run of opts.ID, or starts a run of the type with the input and
// gives it the signal before its first decision: one of the two, whatever others start and signal
// meanwhile. [Run.Started] tells which. Inputs are encoded as in [Client.Start]; a run that is open
// does not get that of the start. A repeat with the RequestID of an earlier call signals once.
//
// opts.ID is required. The conflict policy may be ConflictTerminateExisting, to begin anew in any
// case.
func (c *Client) SignalWithStart(
	ctx context.Context, typ string, input any, signal string, signalInput any, opts *StartOptions,
) (*Run, error) {
	q := query{verb: "start"}
	if opts == nil || opts.ID == "" {
		return nil, newError(q,
			fmt.Errorf("%w: StartOptions.ID is empty, want the workflow id that is signaled",
				natsconn.ErrInvalid))
	}
	q.id = opts.ID
	req, err := c.startRequest(typ, input, *opts)
	if err != nil {
		return nil, newError(q, err)
	}
	if err := subject.ValidateID("signal name", signal); err != nil {
		return nil, newError(q, err)
	}
	payload, err := encode("signal input", signalInput)
	if err != nil {
		return nil, newError(q, err)
	}
	req.IDConflictPolicy = cmp.Or(req.IDConflictPolicy, schemas.ConflictUseExisting)
	req.Signal = &schemas.StartSignal{Name: signal, Input: payload, RequestID: req.RequestID}
	return c.start(ctx, q, req)
}

func (c *Client) start(ctx context.Context, q query, req *schemas.StartRequest) (*Run, error) {
	if err := c.spillStart(ctx, q, req); err != nil {
		return nil, err
	}
	out, err := call(ctx, c, q, req,
		func(r *schemas.StartResponse) *schemas.Error { return r.Error })
	if err != nil {
		return nil, err
	}
	run := c.Run(cmp.Or(out.WorkflowID, q.id), out.Run)
	run.started = out.Started
	return run, nil
}

func (c *Client) startRequest(
	typ string, input any, o StartOptions,
) (*schemas.StartRequest, error) {
	if err := subject.ValidateID("workflow id", o.ID); err != nil {
		return nil, err
	}
	if err := subject.ValidateID("workflow type", typ); err != nil {
		return nil, err
	}
	payload, err := encode("input", input)
	if err != nil {
		return nil, err
	}
	limits := [3]schemas.Duration{}
	for i, d := range []struct {
		field string
		value time.Duration
	}{{"Timeout", o.Timeout}, {"DecisionTimeout", o.DecisionTimeout}, {"DecisionWait", o.DecisionWait}} {
		if d.value < 0 && d.value != Unlimited {
			return nil, fmt.Errorf(
				"%w: StartOptions.%s is %v, want more than 0, 0 for the default, or Unlimited",
				natsconn.ErrInvalid, d.field, d.value)
		}
		limits[i] = schemas.Duration(d.value)
	}
	run := ulid.Make().String()
	if o.RequestID != "" {
		// the service derives it from the request id: a repeat names the same run, however many
		// came after it
		run = ""
	}
	return &schemas.StartRequest{
		V: schemas.Version, WorkflowID: o.ID, Run: run, RequestID: cmp.Or(o.RequestID, run),
		Type: typ, TypeVersion: o.TypeVersion, Input: payload,
		ExecutionStartToCloseTimeout: limits[0], TaskStartToCloseTimeout: limits[1],
		TaskScheduleToStartTimeout: limits[2],
		TaskPriority:               o.Priority, ActivityDefaults: o.ActivityDefaults, ChildPolicy: o.ChildPolicy,
		TagList: o.Tags, Attributes: o.Attributes, Identity: c.name,
		IDReusePolicy: o.ReusePolicy, IDConflictPolicy: o.ConflictPolicy,
		StartMode: o.Mode, Continuation: o.Continuation, NotAfter: schemas.At(o.NotAfter),
	}, nil
}

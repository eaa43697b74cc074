package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/internal/warm"
	"github.com/droverhq/drover/schemas"
)

// ErrNoDefinition is what a [Store] returns for a flow, or a version of one, that it does not have.
var ErrNoDefinition = errors.New("there is no such flow")

// Store has the definitions of flows. It is asked once for each version by each decider that runs
// it.
type Store interface {
	// Definition returns a version of a flow, and its name; without a version the one that runs
	// begin with now. What it returns is never changed. An error wraps ErrNoDefinition if there is
	// none; any other means to ask again later.
	Definition(
		ctx context.Context,
		namespace, name, version string,
	) (d *model.Definition, of string, err error)
}

// Options of a decider. The zero value is usable.
type Options struct {
	// List is the task list of activities that name none, of runs whose activity defaults name none
	// either. Defaults to none: the activity is refused then, unless its type has a list.
	List string
	// Random gives numbers in [0,1), for jitter and ${workflow.util.random}. Defaults to that of
	// math/rand/v2.
	Random func() float64
	// Kept is how many versions of flows are kept compiled. Defaults to 100.
	Kept int
	// Warm is how many runs are kept in memory between two decisions, so that their context need
	// not be read. Defaults to 1000; negative is none.
	Warm int
	// Trace is told what the steps of runs do, while a decision is made: for those who look on. A
	// decision that is made twice tells twice. It is called by many goroutines. Defaults to nobody.
	Trace func(Trace)
}

// Decider runs flows. It is a [decider.Decider] for any number of workflow types, each of which is
// the name of a flow.
type Decider struct {
	store Store
	o     Options

	mu   sync.Mutex
	kept map[version]*machine.Flow

	warm *warm.Runs[warmRun]
	full func(*decider.Task) bool // whether it is time to continue as new
}

// warmRun is a run as its last decision left it. It belongs to whoever has taken it.
type warmRun struct {
	s     *saved
	p     *machine.Program
	state *run.State
}

type version struct{ namespace, name, version string }

// New returns a decider for the flows of a store. It panics without one.
func New(store Store, o *Options) *Decider {
	if store == nil {
		panic("flow: New without a store: give it one")
	}
	d := &Decider{
		store: store, kept: map[version]*machine.Flow{}, full: (*decider.Task).SuggestContinueAsNew,
	}
	if o != nil {
		d.o = *o
	}
	if d.o.Random == nil {
		d.o.Random = rand.Float64
	}
	if d.o.Kept <= 0 {
		d.o.Kept = 100
	}
	d.warm = warm.New[warmRun](cmp.Or(d.o.Warm, 1000), nil)
	return d
}

// Stop implements [decider.Stopper]: it lets go of the runs that are kept in memory.
func (d *Decider) Stop() { d.warm.Clear() }

// Decide implements [decider.Decider].
func (d *Decider) Decide(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	if w, ok := d.warm.Take(t); ok {
		return d.goOn(ctx, t, &turn{d: d, task: t, s: w.s, p: w.p, state: w.state}, nil)
	}
	before, err := t.Payload(ctx, t.Context())
	if err != nil {
		return nil, err
	}
	s, err := restore(before)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return d.begin(ctx, t)
	}
	flow, err := d.flow(ctx, t, s.Version)
	if err != nil {
		return nil, err
	}
	p, err := flow.Program(s.Part)
	if err != nil {
		return nil, fmt.Errorf("flow %s: %w", t.Type(), err)
	}
	state, err := stateOf(ctx, t, s.State)
	if err != nil {
		return nil, fmt.Errorf("flow %s: %w", t.Type(), err)
	}
	return d.goOn(ctx, t, &turn{d: d, task: t, s: s, p: p, state: state}, nil)
}

// begin makes the first decision of a run. What its caller has done wrong fails the run.
func (d *Decider) begin(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	r := &reader{ctx: ctx, task: t, s: &saved{Format: contextFormat}}
	var started *schemas.WorkflowStarted
	for e, err := range t.History(ctx) {
		if err != nil {
			return nil, err
		}
		if a, ok := e.Attributes.(*schemas.WorkflowStarted); ok {
			started = a
		}
		break
	}
	if started == nil {
		return nil, errors.New("flow: the history does not begin with WorkflowStarted")
	}
	r.s.Defaults = started.ActivityDefaults
	o, err := r.begins(started)
	if bad, ok := errors.AsType[*inputError](err); ok {
		return []schemas.Decision{decider.Fail("input", bad.Error())}, nil
	}
	if err != nil {
		return nil, err
	}
	asked := cmp.Or(o.Version, t.TypeVersion())
	definition, found, err := d.store.Definition(ctx, t.Namespace(), t.Type(), asked)
	switch {
	case errors.Is(err, ErrNoDefinition) && o.Version == "": // nobody has promised this version
		return []schemas.Decision{decider.Fail("definition", err.Error())}, nil
	case err != nil:
		return nil, fmt.Errorf("flow %s: %w", t.Type(), err)
	}
	flow, err := d.compiled(version{t.Namespace(), t.Type(), found}, definition)
	if err != nil {
		return nil, fmt.Errorf("flow %s: %w", t.Type(), err)
	}
	p, err := flow.Program(o.Part)
	if err != nil {
		return []schemas.Decision{decider.Fail("input", err.Error())}, nil
	}
	b := machine.Begin{
		Trace: d.trace(t, p), Program: o.Part, ID: t.Execution().WorkflowID,
		Task: t.Execution().Run, Mode: string(cmp.Or(t.StartMode(), started.Mode())),
		Reducing: o.Reducing, IdempotentAll: o.IdempotentAll,
	}
	b.Input, _ = o.Input.V.(map[string]any)
	b.Vars, _ = o.Vars.V.(map[string]any)
	switch {
	case o.Continue != nil && started.Replays != nil && o.Continue.locked():
		r.s.Again = o.Continue.Inputs
		b.Replay = &machine.Origin{State: o.Continue.State, From: schemas.ReplayFromEnd}
	case o.Continue != nil:
		return d.carryOn(ctx, t, &turn{d: d, task: t, s: r.s, p: p}, o, found)
	case o.Replay != nil:
		b.Replay = &machine.Origin{
			State: o.Replay.State, From: o.Replay.From, Force: o.Replay.Force,
		}
	}
	state, actions, err := machine.Start(p, b, now(t), d.o.Random)
	if err != nil {
		return []schemas.Decision{decider.Fail("input", err.Error())}, nil
	}
	r.s.Version, r.s.Part, r.s.Locked = found, o.Part, o.Locked
	return d.goOn(ctx, t, &turn{d: d, task: t, s: r.s, p: p, state: state}, actions)
}

// goOn feeds the window to the run, and leaves its state in the context. actions are those of its
// beginning.
func (d *Decider) goOn(
	ctx context.Context, t *decider.Task, turn *turn, actions []machine.Action,
) ([]schemas.Decision, error) {
	turn.state.Trace, turn.state.Draining = d.trace(t, turn.p), d.full(t)
	r := &reader{ctx: ctx, task: t, s: turn.s, in: inputs(turn.s.Again)}
	turn.s.Again = nil
	for _, e := range t.Events() {
		if err := r.read(e); err != nil {
			return nil, err
		}
	}
	turn.state.Holds = len(turn.s.Held) > 0
	// Timers that this run has from the one before are armed first: if it were refused to continue,
	// nobody would arm them.
	moves := actions == nil && len(turn.decisions) == 0 && d.full(t) && turn.still(r.in) &&
		!stays(t)
	if err := fill(ctx, t, turn.state, len(r.in), moves); err != nil {
		return nil, err
	}
	if moves {
		return turn.onward(r.in)
	}
	if len(r.in) > 0 || actions == nil {
		more, err := machine.Step(turn.p, turn.state, r.in, now(t), d.o.Random)
		if err != nil {
			return nil, fmt.Errorf("flow %s: %w", t.Type(), err)
		}
		actions = append(actions, more...)
	}
	turn.decide(actions)
	if err := fill(ctx, t, turn.state, 0, turn.end != nil && turn.s.Part != ""); err != nil {
		// the run around it keeps the state
		return nil, err
	}
	decisions, err := turn.finish()
	if err == nil && turn.end == nil {
		turn.s.State = nil // it is written anew
		d.warm.Keep(t, warmRun{s: turn.s, p: turn.p, state: turn.state})
	}
	return decisions, err
}

// now is the time of the latest event of the window: the same each time the decision is made.
func now(t *decider.Task) time.Time {
	var latest schemas.Timestamp
	for _, e := range t.Events() {
		latest = max(latest, e.Time)
	}
	if latest == 0 {
		return time.Now()
	}
	return latest.Time()
}

// flow returns a version that a run has begun with.
func (d *Decider) flow(ctx context.Context, t *decider.Task, of string) (*machine.Flow, error) {
	v := version{t.Namespace(), t.Type(), of}
	d.mu.Lock()
	f := d.kept[v]
	d.mu.Unlock()
	if f != nil {
		return f, nil
	}
	definition, _, err := d.store.Definition(ctx, v.namespace, v.name, v.version)
	if errors.Is(err, ErrNoDefinition) {
		return nil, fmt.Errorf(
			"flow %s, version %s: %w: the run began with this version and keeps it: deploy that "+
				"content again, and after it what is to be current", v.name, v.version, err)
	}
	if err != nil {
		return nil, fmt.Errorf("flow %s, version %s: %w", v.name, v.version, err)
	}
	f, err = d.compiled(v, definition)
	if err != nil {
		return nil, fmt.Errorf("flow %s, version %s: %w", v.name, v.version, err)
	}
	return f, nil
}

func (d *Decider) compiled(v version, definition *model.Definition) (*machine.Flow, error) {
	d.mu.Lock()
	f := d.kept[v]
	d.mu.Unlock()
	if f != nil {
		return f, nil
	}
	f, err := machine.Compile(definition)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for other := range d.kept {
		if len(d.kept) < d.o.Kept {
			break
		}
		delete(d.kept, other) // any: it is read again when it is needed
	}
	d.kept[v] = f
	return f, nil
}

package decider

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/nearby"
	"github.com/droverhq/drover/decider/internal/history"
	"github.com/droverhq/drover/internal/adapt"
	"github.com/droverhq/drover/internal/deadline"
	"github.com/droverhq/drover/schemas"
)

// A worker whose connection also has an activity worker gets a quick task of a run that it keeps,
// together with what the decision after it needs. The activity worker does the task, the decider
// decides as if its success were in the history, and both go to the owner in one message (ADR
// 0031).
//
//   - What the decider sees is what the history will hold, to the byte, if the owner takes the
//     decision: the owner takes it only if nothing else has happened, and then with the times of
//     this worker. So the cache may keep it.
//   - An outcome waits for its decision no longer than aheadPatience. Types whose deciders need
//     longer are left alone for a while.
//   - A decider that fails decides nothing ahead. It is asked in the ordinary way and tells its
//     failure there.

const (
	// aheadPatience is how long an outcome waits for the decision after it; the owner would not
	// wait longer either.
	aheadPatience = 20 * time.Millisecond
	// aheadSize bounds a reply that travels with an outcome, bytes.
	aheadSize = 64 << 10
	// maxSkipped caps how many decisions of a slow type are left to the ordinary way before the
	// next one is tried.
	maxSkipped = 256
)

// localTask is a task that comes with what the decision after it needs.
type localTask struct {
	s *session
	a *ask
	o *outcome
}

// aheadOf takes a task of a list that this process works, or refuses it.
func (s *session) aheadOf(a *ask, of []string) {
	if len(of) == 2 && !s.draining.Load() &&
		s.nearby.Take(nearby.List{Namespace: s.opts.Namespace, Name: of[0]}, of[1], a.msg,
			&localTask{s: s, a: a}) {
		return
	}
	if err := a.msg.Respond(nil, []byte("busy")); err != nil {
		s.log.WithField("err", err).
			Debug("a task cannot be refused; its owner puts it on the list in a second")
	}
}

// Open implements [nearby.Errand].
func (e *localTask) Open() (*schemas.ActivityTask, nearby.Decide, error) {
	o, err := e.s.begin(e.a)
	if err != nil {
		return nil, nil, err
	}
	dt := &o.t.task
	ahead := dt.Ahead
	if ahead == nil {
		return nil, nil, fmt.Errorf("%w: ahead is missing", ErrInvalidTask)
	}
	i := slices.IndexFunc(dt.Events,
		func(ev schemas.Event) bool { return ev.ID == ahead.Task.ScheduledEventID })
	if i < 0 || dt.More || history.WindowEnd(dt) != dt.StartedID-schemas.AheadEvents {
		return nil, nil, fmt.Errorf("%w: the window ends at event %d, want %d, with event %d",
			ErrInvalidTask, history.WindowEnd(dt), dt.StartedID-schemas.AheadEvents,
			ahead.Task.ScheduledEventID)
	}
	scheduled, ok := dt.Events[i].Attributes.(*schemas.ActivityScheduled)
	if !ok {
		return nil, nil, fmt.Errorf("%w: event %d is %s, want ActivityScheduled",
			ErrInvalidTask, ahead.Task.ScheduledEventID, dt.Events[i].Type())
	}
	// the function's own: the decider sees the event, and the cache keeps it
	ahead.Task.Input = slices.Clone(scheduled.Input)
	if o.t.context, ok = contextIn(dt.Events); !ok {
		return nil, nil, fmt.Errorf("%w: the window has no DeciderCompleted", ErrInvalidTask)
	}
	e.o = o
	return &ahead.Task, e.decide, nil
}

// contextIn is what the last decision of a window has left.
func contextIn(window []schemas.Event) (schemas.Payload, bool) {
	for _, ev := range slices.Backward(window) {
		if completed, ok := ev.Attributes.(*schemas.DeciderCompleted); ok {
			return completed.ExecutionContext, true
		}
	}
	return nil, false
}

// decide makes the decision after an outcome, in a slot of the pool if one is free. It is
// [nearby.Decide]. The decider runs on the goroutine that did the work: handing it on, and the
// answer back, took 4 % of the CPU of a worker whose tasks take microseconds. So a decider that is
// late keeps that goroutine, and the outcome goes elsewhere. One that is [Apart] has another, which
// this one waits for.
func (e *localTask) decide(
	r *schemas.Report, elsewhere func(),
) (d *schemas.AheadDecision, told bool) {
	if r.Kind != schemas.ReportSuccess || e.s.draining.Load() || e.s.latency.skips(e.a.typ) {
		return nil, false
	}
	o, dt := e.o, &e.o.t.task
	now := time.Now()
	at := dt.Ahead.At.Add(schemas.Duration(now.Sub(e.a.arrived)))
	dt.Events = append(slices.Clip(dt.Events), foreseen(dt, r, at)...)
	dt.StartedAt = dt.Events[len(dt.Events)-1].Time
	dt.Deadline = at.Add(schemas.Duration(aheadPatience))
	o.t.known.Window += len(r.Result)
	e.a.arrived = now // the decision has not waited for more than its outcome
	o.until = now.Add(aheadPatience)
	late := time.AfterFunc(aheadPatience, func() {
		if o.done.CompareAndSwap(false, true) { // or it was made in this moment
			e.s.latency.note(e.a.typ, false)
			elsewhere()
		}
	})
	ended := false
	defer func() {
		late.Stop()
		if !ended && o.done.CompareAndSwap(false, true) {
			// the decider ended its goroutine (runtime.Goexit)
			go elsewhere()
		}
	}()
	var body []byte
	slot := e.s.pool.here
	if isApart(e.a.decider) {
		slot = e.s.pool.apart
	}
	tried := slot(func() { body = e.s.ahead(e) })
	ended = true
	switch {
	case body != nil:
		e.s.latency.note(e.a.typ, true)
		return &schemas.AheadDecision{At: at, Token: dt.Token, Reply: body}, false
	case !o.done.CompareAndSwap(false, true):
		return nil, true
	case tried:
		e.s.latency.note(e.a.typ, true)
	}
	return nil, false
}

// make decides and encodes the reply; nil if there is none to send. Its context is the decider's,
// as for any other decision: that of the activity worker says nothing about it, and has other
// values.
func (e *localTask) make(work context.Context) []byte {
	o := e.o
	o.began = time.Now()
	ctx := deadline.New(work, o.until, ErrDeadline)
	defer ctx.Cancel(nil)
	e.s.cache.Recall(&o.t.task, &o.t.known)
	decisions, err := decide(ctx, e.a.decider, &o.t)
	if err == nil {
		decisions, err = o.t.spill(ctx, decisions)
	}
	var body []byte
	if err == nil {
		body, err = o.body(decisions)
	}
	if err != nil {
		o.log(err).Debug("no decision ahead of its task; the broker will ask")
		return nil
	}
	if len(body) > aheadSize || !o.done.CompareAndSwap(false, true) {
		return nil
	}
	o.keep(body, decisions)
	o.observe(OutcomeDecided, len(decisions), nil)
	return body
}

// foreseen are the events that the owner adds when it takes a success of the task. They share no
// memory with the report, whose result belongs to the function that returned it, nor with the task:
// the cache keeps them.
func foreseen(dt *schemas.DecisionTask, r *schemas.Report, at schemas.Timestamp) []schemas.Event {
	last := dt.Events[len(dt.Events)-1]
	scheduled, next := dt.Ahead.Task.ScheduledEventID, dt.Ahead.Scheduled
	began := at
	if r.Elapsed.Limited() {
		began -= schemas.Timestamp(r.Elapsed)
	}
	at = max(at, last.Time)
	return []schemas.Event{
		{ID: last.ID + 1, Time: max(began, last.Time), Attributes: &schemas.ActivityStarted{
			ScheduledEventID: scheduled, Attempt: dt.Ahead.Task.Attempt, Identity: r.Identity,
			TaskSequence: r.TaskSequence, Nonce: r.Nonce,
		}},
		{
			ID: last.ID + 2, Time: at,
			Attributes: &schemas.ActivitySuccess{
				ScheduledEventID: scheduled, StartedEventID: last.ID + 1,
				Result: slices.Clone(r.Result),
			},
		},
		{ID: last.ID + 3, Time: at, Attributes: &next},
		{
			ID: last.ID + 4, Time: at,
			Attributes: &schemas.DeciderStarted{ScheduledEventID: last.ID + 3},
		},
	}
}

// tardiness is which types' deciders were too slow to decide while an outcome waits.
type tardiness struct {
	mu    sync.Mutex
	types adapt.Backoff[string]
}

// skips tells whether a decision is left to the ordinary way.
func (t *tardiness) skips(typ string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.types.Skip(typ)
}

func (t *tardiness) note(typ string, inTime bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.types.Most = maxSkipped
	t.types.Note(typ, inTime)
}

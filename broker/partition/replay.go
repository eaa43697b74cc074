package partition

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/internal/runid"
	"github.com/droverhq/drover/schemas"
)

// A replay is a new run of the same workflow id that repeats one which has ended (ADR 0028).
//
//   - Where it begins, and with which input, its decider tells, before anything is written: so what
//     cannot be replayed is refused, and the outcome of the id stays what it is.
//   - The run id follows from the request id, as that of a start: a repeat finds the run (P-5).
//   - The old history is closed and never changes. The new run's first event and the headers of its
//     records name the old one, so both ends of the link are found by looking at the runs of the
//     id.

const (
	KindReplay      = "replay"
	KindReplayForce = "replayForce"

	// replayAsk bounds how long a decider may think about a replay.
	replayAsk = schemas.Duration(5e9)
)

// replay is one that is being prepared.
type replay struct {
	q      *schemas.ReplayRequest
	force  bool
	latest string // run of the workflow id
	run    string // the new one
	old    *execution.State
	plan   *schemas.ReplayPlan
	input  schemas.Payload
	// goesOn: the decider has given the input, so the new run begins where the old one was.
	goesOn bool
	// done: an earlier try of the request has begun the run, or there is nothing to do.
	done bool
}

// from takes the words for places in any case, and says what is meant without one.
func (y *replay) from() string {
	switch from := strings.ToLower(y.q.From); from {
	case "":
		return schemas.ReplayFromEnd
	case schemas.ReplayFromStart, schemas.ReplayFromLast, schemas.ReplayFromEnd:
		return from
	}
	return y.q.From
}

// requestID is that of the start: a start with the request id of a replay is no repeat of it.
func (y *replay) requestID() string { return "replay " + y.q.RequestID }

func (y *replay) answer(run string, started bool) *schemas.ReplayResponse {
	a := &schemas.ReplayResponse{
		V: schemas.Version, WorkflowID: y.q.WorkflowID, Run: run, Started: started, Plan: y.plan,
	}
	if y.old != nil {
		a.Replays = y.old.Run
	}
	return a
}

// replay takes a request at the owner of the workflow id.
func (p *Partition) replay(q *schemas.ReplayRequest, force bool, reply func(any)) {
	r := p.get(q.WorkflowID)
	p.whenSound(r, reply, func() {
		if !r.Live() {
			reply(&schemas.ReplayResponse{
				V: schemas.Version, WorkflowID: q.WorkflowID, Error: notFound(q.WorkflowID, q.Run),
			})
			return
		}
		y := &replay{q: q, force: force, latest: r.State.Run}
		y.run = runid.OfRequest(q.WorkflowID, y.requestID())
		open := !r.Closed()
		status := r.State.Status
		keeping := r.State.Keeping()
		p.afterPending(r, func() { // what it is judged by is in the history
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
				p.prepare(y, reply)
			}
		})
	})
}

func (y *replay) refuse(e *schemas.Error) *schemas.ReplayResponse {
	a := y.answer("", false)
	a.Error = e
	return a
}

// prepare reads the old run and asks its decider, off the loop, and begins the new run.
func (p *Partition) prepare(y *replay, reply func(any)) {
	select {
	case p.b.Replays <- struct{}{}:
	default:
		reply(y.refuse(schemas.Errorf(schemas.CodeUnavailable, "%d replays are being prepared",
			env.MostReplays).WithHint("try again with the same request id")))
		return
	}
	p.b.Work.Go(func() {
		defer func() { <-p.b.Replays }()
		ctx, cancel := context.WithTimeout(p.b.Background, env.ReadTimeout)
		defer cancel()
		err := p.compose(ctx, y)
		p.loop.Post(func() {
			refused, ok := errors.AsType[*schemas.Error](err)
			switch {
			case p.sealed(): // the next owner has the request
			case ok:
				reply(y.refuse(refused))
			case err != nil:
				reply(y.refuse(env.Unavailable(err)))
			case y.done:
				reply(y.answer(y.run, false))
			case y.q.DryRun:
				reply(y.answer("", false))
			default:
				p.startReplay(y, reply)
			}
		})
	})
}

// compose finds out what the new run begins with.
func (p *Partition) compose(ctx context.Context, y *replay) error {
	_, err := p.b.Reads.LastBySubject(ctx, p.b.NS.StreamHistory(p.n),
		p.b.NS.History(p.n, y.q.WorkflowID, y.run))
	if err == nil {
		y.done = true
		return nil
	}
	if !errors.Is(err, natsconn.ErrNotFound) {
		return err
	}
	target := y.latest
	if y.q.Run != "" {
		target = y.q.Run
	}
	l, err := p.loadRun(ctx, y.q.WorkflowID, target)
	switch {
	case err != nil:
		return err
	case l == nil:
		return schemas.Errorf(schemas.CodeNotFound,
			"workflow %q has no run %s: it never had one, or the run is gone by its retention",
			y.q.WorkflowID, target).
			InField("run").About(y.q.WorkflowID, target).
			WithHint("see which are there with: drover list --id %s", y.q.WorkflowID)
	}
	y.old = l.State
	switch next := explain.Result(l.State).NewRun; {
	case !l.State.Closed():
		return schemas.Errorf(schemas.CodeConflict,
			"run %s of workflow %q is %s: a run is replayed once it has ended",
			target, y.q.WorkflowID, l.State.Status).About(y.q.WorkflowID, target)
	case next != "":
		return schemas.Errorf(schemas.CodeConflict, "run %s of workflow %q has continued as run %s",
			target, y.q.WorkflowID, next).
			InField("run").About(y.q.WorkflowID, target).WithHint("replay that one")
	case l.State.Keeping() != nil && l.State.Keeping().Disabled:
		return schemas.Errorf(schemas.CodeConflict,
			"the retention of run %s of workflow %q is disabled: it is not kept once it has "+
				"ended, and cannot be replayed", target, y.q.WorkflowID).
			About(y.q.WorkflowID, target).WithHint("begin anew with: drover start %s --id %s",
			l.State.Start.WorkflowType, y.q.WorkflowID)
	case l.State.Status == schemas.StatusCompleted && y.from() == schemas.ReplayFromEnd:
		y.run, y.done, y.plan = target, true, &schemas.ReplayPlan{From: schemas.ReplayFromEnd}
		return nil
	}
	if err := p.askReplay(ctx, y); err != nil || y.q.DryRun {
		return err
	}
	return p.ownInput(ctx, y)
}

// askReplay asks a decider of the type where the new run begins. One that does not know the
// question keeps no replay points.
func (p *Partition) askReplay(ctx context.Context, y *replay) error {
	s := y.old
	task := &schemas.DecisionTask{
		V: schemas.Version, Namespace: p.b.Options.Namespace, WorkflowID: s.WorkflowID, Run: s.Run,
		Type:        s.Start.WorkflowType,
		TypeVersion: s.Start.WorkflowTypeVersion, Token: s.Run + ".replay." + y.run,
		Events: []schemas.Event{}, Context: s.Context, Attempt: 1,
		Deadline: p.now().Add(replayAsk),
		Replay:   &schemas.ReplayQuestion{From: y.from(), Force: y.force},
	}
	body, err := schemas.MarshalJSON(task)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, replayAsk.Std())
	defer cancel()
	m, err := p.b.Conn.Request(ctx, p.b.NS.Decide(task.Type), nil, body)
	if err != nil && y.force && y.from() == schemas.ReplayFromStart {
		// it needs no decider to begin anew with the same input
		y.plan = &schemas.ReplayPlan{From: schemas.ReplayFromStart}
		return nil
	}
	switch {
	case errors.Is(err, natsconn.ErrNoResponders):
		return schemas.Errorf(
			schemas.CodeConflict,
			"no decider for type %q is listening, and only it can tell where run %s may begin again",
			task.Type,
			s.Run,
		).
			About(s.WorkflowID, s.Run).WithHint(
			"start one in namespace %q, or begin anew with: drover start %s --id %s",
			p.b.Options.Namespace, task.Type, s.WorkflowID)
	case errors.Is(err, natsconn.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return schemas.Errorf(schemas.CodeTimeout,
			"the decider of type %q did not tell within %v where run %s may begin again",
			task.Type, replayAsk.Std(), s.Run).
			About(s.WorkflowID, s.Run).WithHint("look at its log; asking again does no harm")
	case err != nil:
		return err
	}
	reply := &schemas.DecisionReply{}
	if err := natsconn.Decode(m.Header, m.Data, reply); err != nil {
		return schemas.Errorf(schemas.CodeConflict,
			"the decider of type %q gave an answer that cannot be read: %v", task.Type, err).
			About(s.WorkflowID, s.Run)
	}
	return y.answered(task.Type, reply)
}

// answered takes the answer of a decider.
func (y *replay) answered(typ string, reply *schemas.DecisionReply) error {
	a := reply.Replay
	switch {
	case a == nil && reply.Error != nil:
		return schemas.Errorf(schemas.CodeConflict,
			"the decider of type %q cannot tell where run %s may begin again: %s",
			typ, y.old.Run, reply.Error.Reason).
			About(y.q.WorkflowID, y.old.Run).WithHint("look at its log; asking again does no harm")
	case a == nil && y.from() != schemas.ReplayFromStart:
		return schemas.Errorf(
			schemas.CodeConflict,
			"the decider of type %q keeps no replay points: a run of it can be replayed from start only",
			typ,
		).
			InField("from").About(y.q.WorkflowID, y.old.Run).
			WithHint("say --from start: the new run begins with the same input")
	case a == nil:
		a = &schemas.ReplayAnswer{}
	case a.Refused != "":
		return schemas.Errorf(schemas.CodeConflict,
			"run %s of workflow %q cannot be replayed from %s: %s",
			y.old.Run, y.q.WorkflowID, y.from(), a.Refused).
			InField("from").About(y.q.WorkflowID, y.old.Run).WithHint("%s", a.Hint)
	}
	y.goesOn = len(a.Input) > 0
	if y.plan, y.input = a.Plan, a.Input; y.plan == nil {
		y.plan = &schemas.ReplayPlan{From: schemas.ReplayFromStart}
	}
	return nil
}

// ownInput gives the new run an input of its own: a large one of the old run goes with that, and is
// copied (P-14).
func (p *Partition) ownInput(ctx context.Context, y *replay) error {
	if len(y.input) == 0 {
		y.input = y.old.Start.Input
		ref, ok := y.input.Ref()
		if !ok {
			return nil
		}
		w, cursor := p.b.Store.NewWriter(), ""
		for {
			data, next, err := p.b.Store.Read(ctx, ref.Object, cursor, p.b.Store.ChunkBytes())
			if err == nil {
				err = w.Write(ctx, data)
			}
			if err != nil {
				return errors.Join(fmt.Errorf("copy the input of run %s: %w", y.old.Run, err),
					w.Abort(ctx))
			}
			if cursor = next; next == "" {
				break
			}
		}
		own, err := w.Commit(ctx, "replay-"+y.run)
		if err == nil {
			y.input = schemas.RefPayload(own)
		}
		return err
	}
	if len(y.input) <= payloads.InlineLimit(p.b.MaxPayload()) {
		return nil
	}
	ref, err := p.b.Store.Put(ctx, "replay-"+y.run, y.input)
	if err == nil {
		y.input = schemas.RefPayload(ref)
	}
	return err
}

// start is that of the new run: of the same type, with the same options.
func (y *replay) start() *schemas.StartRequest {
	s := y.old.Start
	attributes := s.Attributes
	if y.goesOn {
		attributes = y.old.Attributes
	}
	return &schemas.StartRequest{
		V: schemas.Version, WorkflowID: y.q.WorkflowID, Run: y.run, RequestID: y.requestID(),
		Type: s.WorkflowType, TypeVersion: s.WorkflowTypeVersion, Input: y.input,
		ExecutionStartToCloseTimeout: s.ExecutionStartToCloseTimeout,
		TaskStartToCloseTimeout:      s.TaskStartToCloseTimeout,
		TaskScheduleToStartTimeout:   s.TaskScheduleToStartTimeout, TaskPriority: s.TaskPriority,
		ActivityDefaults: s.ActivityDefaults, ChildPolicy: s.ChildPolicy, TagList: s.TagList,
		Attributes: attributes, Identity: y.q.Identity, Continuation: s.Continuation,
		Replays: &schemas.ReplayOf{
			Run: y.old.Run, From: y.from(), Force: y.force, Reason: y.q.Reason,
			Identity: y.q.Identity,
		},
	}
}

// startReplay lets the new run begin. It is judged as any start: another run of the id may be open
// by now.
func (p *Partition) startReplay(y *replay, reply func(any)) {
	q := y.start()
	body, err := schemas.Marshal(q)
	if err == nil && len(body) > p.b.MessageLimit() {
		err = schemas.Errorf(schemas.CodeTooLarge,
			"the start of the new run takes %d bytes; at most %d fit",
			len(body), p.b.MessageLimit()).About(q.WorkflowID, y.old.Run)
	}
	if err != nil {
		refused, ok := errors.AsType[*schemas.Error](err)
		if !ok {
			refused = schemas.Errorf(schemas.CodeInternal, "%v", err)
		}
		reply(y.refuse(refused))
		return
	}
	if y.force {
		p.log.WithField("workflow", q.WorkflowID).WithField("run", y.old.Run).WithField("from",
			y.from()).WithField("identity", y.q.Identity).
			Warn("a replay is forced: idempotence and replay points are not minded")
	}
	start := execution.Start{Request: q}
	if y.goesOn { // it is kept as what it goes on with
		start.Retention, start.ParentRetention = y.old.Retention, y.old.Start.ParentRetention
	}
	e := &actor.Message{
		WorkflowID: q.WorkflowID,
		Event:      start,
		At:         p.now(),
		Log:        noLog,
		Subject:    p.b.NS.API(KindReplay),
		Body:       body,
	}
	e.Answer = func(*actor.Run, []schemas.Event) {
		if e.Verdict.Refused != nil {
			reply(y.refuse(e.Verdict.Refused))
			return
		}
		reply(y.answer(e.Verdict.Run, e.Verdict.Started))
	}
	r := p.get(q.WorkflowID)
	p.whenSound(r, reply, func() { p.deliver(r, e) })
}

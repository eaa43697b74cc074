package partition

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/large"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/schemas"
)

// startDecides decides what a start does to a workflow id: it begins a run, repeats an earlier
// answer, signals or replaces the open run, or is refused. It tells whether the run is ready for
// the start to happen.
func (p *Partition) startDecides(r *actor.Run, e *actor.Message, q *schemas.StartRequest) bool {
	if !r.Live() {
		if p.startsLate(q) {
			p.settleStart(r, e, actor.Verdict{Refused: tooLate(q)})
			return false
		}
		return p.allowed(r, e, q)
	}
	same := execution.SameStart(r.State.Start, q)
	switch {
	case !same && !e.Fresh:
		p.checkFresh(r, e, q)
	case same, q.Signal != nil && r.State.Knows(execution.StartSignalOf(q)):
		// begun by it, or signaled by it, and closed since perhaps
		p.settleStart(r, e, actor.Verdict{Run: r.State.Run})
	case !e.Verdict.Replaces && p.startsLate(q):
		p.settleStart(r, e, actor.Verdict{Run: r.State.Run, Refused: tooLate(q)})
	case r.Open():
		p.conflict(r, e, q)
	case !e.Verdict.Replaces && !reusable(q.IDReusePolicy, r.State.Status):
		p.settleStart(r, e, actor.Verdict{Run: r.State.Run, Refused: notReusable(r, q)})
	case r.Inflight != nil || len(r.Pending) > 0:
		p.startLater(r, e)
	default:
		return p.allowed(r, e, q)
	}
	return false
}

// startsLate tells whether the time is over in which a start may begin a run. Whoever stood still
// and starts the same run again cannot know whether that run has been purged meanwhile. The owner
// judges it, as late as it can: a fence refuses what comes later.
func (p *Partition) startsLate(q *schemas.StartRequest) bool {
	return q.NotAfter != 0 && p.Env.Latest() > q.NotAfter
}

func tooLate(q *schemas.StartRequest) *schemas.Error {
	const text = "the start of workflow %q comes later than %s, the latest that it allows"
	return schemas.Errorf(schemas.CodeConflict, text, q.WorkflowID, q.NotAfter).
		InField("notAfter").About(q.WorkflowID, q.Run).
		WithHint(
			"no run has begun by it: decide anew whether one is wanted, and start it with a later notAfter")
}

// allowed makes the actor ready for a new run, unless its type may not be used. Only now is it
// known that there is to be one: a repeat, or a signal for the open run, is not judged by its type.
// That of a child was judged when it was decided.
func (p *Partition) allowed(r *actor.Run, e *actor.Message, q *schemas.StartRequest) bool {
	if q.Origin == nil {
		refused := p.Env.RefuseType(q)
		// What stands in the inbox, as former versions put large ones there, could begin after a
		// refusal.
		if p.writer.FullWith(len(e.Body)) && e.Log == noLog {
			refused = p.writer.Refusal()
		}
		if refused != nil {
			p.settleStart(r, e, actor.Verdict{Refused: refused})
			return false
		}
		if fields := p.large.OfStart(e, q, false); len(fields) > 0 {
			p.large.StoreStart(r, e, q, fields)
			return false
		}
		if e.Log == noLog {
			p.writer.Promise(len(e.Body))
		}
	}
	p.reset(r, e, q)
	return true
}

// conflict is a start for a workflow id that has an open run.
func (p *Partition) conflict(r *actor.Run, e *actor.Message, q *schemas.StartRequest) {
	switch {
	case q.IDConflictPolicy == schemas.ConflictTerminateExisting:
		p.happen(r, &actor.Message{
			WorkflowID: r.WorkflowID, At: e.At, Log: noLog,
			Event: execution.Terminate{Request: &schemas.ExecutionRequest{
				WorkflowID: r.WorkflowID, Reason: "replaced by run " + q.Run, Identity: q.Identity,
				Origin: &schemas.RequestOrigin{Cause: schemas.CauseReplaced},
			}},
		})
		e.Verdict.Replaces = true
		p.startLater(r, e)
	case q.Signal != nil:
		if fields := p.large.OfStart(e, q, true); len(fields) > 0 {
			p.large.StoreStart(r, e, q, fields)
			return
		}
		e.Verdict = actor.Verdict{Run: r.State.Run}
		e.Event = execution.StartSignalOf(q)
		p.happen(r, e)
	case q.IDConflictPolicy == schemas.ConflictUseExisting:
		p.settleStart(r, e, actor.Verdict{Run: r.State.Run})
	default:
		p.settleStart(r, e,
			actor.Verdict{Run: r.State.Run, Refused: alreadyStarted(r.WorkflowID, r.State.Run)})
	}
}

// settleStart answers a start that begins nothing, once everything it was judged by is in the
// history.
func (p *Partition) settleStart(r *actor.Run, e *actor.Message, v actor.Verdict) {
	e.Verdict = v
	g := actor.Group{Completions: []*watermark.Completion{e.Completion}}
	if e.Answer != nil {
		g.Answers = append(g.Answers, func() { e.Answer(r, nil) })
	}
	if v.Refused != nil {
		g.Answers = append(g.Answers, func() { p.large.DropStart(e) })
	}
	if e.Log != noLog {
		r.Positions[e.Log] = e.Position
	}
	p.queue(r, g)
}

// startLater: the close is on its way; the new run has a subject of its own and begins after it.
func (p *Partition) startLater(r *actor.Run, e *actor.Message) {
	r.Decider.Queued = true
	r.Mailbox = append([]*actor.Message{e}, r.Mailbox...)
	p.mark(r)
}

func reusable(policy schemas.IDReusePolicy, last schemas.Status) bool {
	switch policy {
	case schemas.ReuseReject:
		return false
	case schemas.ReuseAllowFailed:
		return last != schemas.StatusCompleted
	}
	return true
}

func alreadyStarted(wid, run string) *schemas.Error {
	return schemas.Errorf(schemas.CodeAlreadyStarted, "workflow %q is open already, as run %s",
		wid, run).
		InField("workflowId").About(wid, run).WithHint(
		"wait until it ends, start under another id, or say with idConflictPolicy what is to happen")
}

func notReusable(r *actor.Run, q *schemas.StartRequest) *schemas.Error {
	return schemas.Errorf(schemas.CodeAlreadyStarted,
		"workflow %q has been run already, as run %s (%s), and idReusePolicy is %s",
		r.WorkflowID, r.State.Run, r.State.Status, q.IDReusePolicy).InField("workflowId").
		About(r.WorkflowID, r.State.Run).
		WithHint("start under another id, or with idReusePolicy %s", schemas.ReuseAllow)
}

// checkFresh makes sure that a new run of a known id does not bear the run id of an older one: then
// the start is a late repeat, and gets that run's answer (P-5).
func (p *Partition) checkFresh(r *actor.Run, e *actor.Message, q *schemas.StartRequest) {
	r.Load.Begin()
	r.Mailbox = append([]*actor.Message{e}, r.Mailbox...)
	env.ReadAsync(p.Env, p.Loop, func(ctx context.Context) (bool, error) {
		_, err := p.Env.Reads.LastBySubject(ctx, p.Env.NS.StreamHistory(p.Partition),
			p.Env.NS.History(p.Partition, r.WorkflowID, q.Run))
		if errors.Is(err, natsconn.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	}, func(exists bool, err error) {
		if err != nil {
			p.Log.WithError(err).WithField("workflow", r.WorkflowID).
				Warn("a run id cannot be looked up; trying again")
			p.Loop.After(env.LoadRetry, func() { r.Load.End(); p.mark(r) })
			return
		}
		r.Load.End()
		if exists {
			r.Mailbox = r.Mailbox[1:]
			p.answerOld(e, q)
			e.Completion.Release()
		} else {
			e.Fresh = true
		}
		p.loadedNow(r)
	})
}

// answerOld repeats the answer to a start whose run is not the latest of its id any more.
func (p *Partition) answerOld(e *actor.Message, q *schemas.StartRequest) {
	if q.Origin != nil {
		p.exchange.ReportOld(e, q, 0)
		return
	}
	p.tellStarter(q,
		&schemas.StartResponse{V: schemas.Version, WorkflowID: q.WorkflowID, Run: q.Run})
}

// reset gives the workflow id a new run. It inherits the positions of its predecessor and of the
// owner in both logs, so that nothing its predecessor has consumed is applied again (P-3); only
// signals that waited for this very start are not after it.
func (p *Partition) reset(r *actor.Run, e *actor.Message, q *schemas.StartRequest) {
	read := p.intake.Read()
	waiting := p.takeOrphans(r.WorkflowID)
	for _, w := range append(waiting[:len(waiting):len(waiting)], r.Mailbox...) {
		if w.Log != noLog && !read[w.Log].Before(w.Position) {
			read[w.Log] = w.Position
			read[w.Log].Sequence--
		}
	}
	if r.Live() {
		start, _ := e.Event.(execution.Start)
		start.Request = q
		start.Received, _ = latestIDs(r.State.ReceivedFromWorkflows(),
			p.Env.BodyLimit()-len(e.Body))
		e.Event = start
	}
	p.renew(r, q, append(waiting, r.Mailbox...))
	r.Positions = [2]schemas.Position{
		r.Positions[inboxLog].Later(read[inboxLog]), r.Positions[signalLog].Later(read[signalLog]),
	}
	e.Verdict = actor.Verdict{Run: q.Run, Started: true}
}

// renew makes the actor that of a new run of its workflow id.
func (p *Partition) renew(r *actor.Run, q *schemas.StartRequest, mailbox []*actor.Message) {
	p.alarms.ArmNever(r)
	if r.Live() {
		p.alarms.Drop(r)
	}
	*r = actor.Run{
		WorkflowID: r.WorkflowID, State: execution.New(r.WorkflowID, q.Run), Mailbox: mailbox,
		Positions: r.Positions, Waiters: r.Waiters, Use: r.Use, Uncovered: r.Uncovered,
		Unproved: r.Unproved, Owing: r.Owing,
	}
	p.repeats.Begun(r.WorkflowID)
	p.mark(r)
}

// continueAs begins the run that follows one which has continued as new, directly after it, with
// the signals that nobody has read: the actor takes no message of the workflow id in between (P-4).
func (p *Partition) continueAs(r *actor.Run) {
	q := r.State.Continuation()
	if q.Origin.UnreadSignals > 0 && r.Window.From > r.State.Decision.Previous {
		p.decisions.LoadWindow(r) // and again after it
		return
	}
	unread, sticky := r.State.Unread(r.Window.Events), r.Decider.Sticky
	p.limitIDs(q)
	p.renew(r, q, r.Mailbox)
	r.Decider.Sticky = sticky // on the same worker first (S2-7)
	p.happen(r, &actor.Message{
		WorkflowID: r.WorkflowID,
		Event:      execution.Start{Request: q},
		At:         p.now(),
		Log:        noLog,
	})
	p.copySignals(r, unread)
}

// copySignals writes signals of the run before into this one. They need not fit one record with its
// start: each is a group of its own.
func (p *Partition) copySignals(r *actor.Run, unread []schemas.Event) {
	for _, e := range unread {
		a, _ := e.Attributes.(*schemas.Signal)
		p.happen(r, &actor.Message{
			WorkflowID: r.WorkflowID, Event: execution.Copied{EventID: e.ID, Signal: a},
			At: p.now(), Log: noLog,
		})
	}
}

// limitIDs lets a continued run remember no more than its first record has room for: a thousand ids
// of signals may have 256 bytes each, and the server may take less. Nothing goes on without that
// record. What is forgotten is the oldest, whose repeat is the least likely.
func (p *Partition) limitIDs(q *schemas.StartRequest) {
	o := q.Origin
	if len(o.RequestIDs)+len(o.SignalIDs) == 0 {
		return
	}
	// a little more than the checker wants to be there, whatever else the record has
	quota := p.Env.BodyLimit() + env.HeaderBudget/2 - large.FirstRecord(q)
	o.RequestIDs, quota = latestIDs(o.RequestIDs, quota)
	o.SignalIDs, _ = latestIDs(o.SignalIDs, quota)
}

// latestIDs are the latest of a list that fit into some room, and what is left of that.
func latestIDs(ids []string, quota int) ([]string, int) {
	for i := len(ids) - 1; i >= 0; i-- {
		left := quota - schemas.WordsSize(ids[i:i+1])
		if left < 0 {
			return ids[i+1:], quota
		}
		quota = left
	}
	return ids, quota
}

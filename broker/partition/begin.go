package partition

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/schemas"
)

// startDecides decides what a start does to a workflow id: it begins a run, repeats an earlier
// answer, signals or replaces the open run, or is refused. It tells whether the run is ready for
// the start to happen.
func (p *Partition) startDecides(r *run, e *message, q *schemas.StartRequest) bool {
	if !r.live() {
		if p.startsLate(q) {
			p.settleStart(r, e, verdict{refused: tooLate(q)})
			return false
		}
		return p.allowed(r, e, q)
	}
	same := sameStart(r.state.Start, q)
	switch {
	case !same && !e.fresh:
		p.checkFresh(r, e, q)
	case same, q.Signal != nil && r.state.Knows(execution.StartSignalOf(q)):
		// begun by it, or signaled by it, and closed since perhaps
		p.settleStart(r, e, verdict{run: r.state.Run})
	case !e.verdict.replaces && p.startsLate(q):
		p.settleStart(r, e, verdict{run: r.state.Run, refused: tooLate(q)})
	case r.open():
		p.conflict(r, e, q)
	case !e.verdict.replaces && !reusable(q.IDReusePolicy, r.state.Status):
		p.settleStart(r, e, verdict{run: r.state.Run, refused: notReusable(r, q)})
	case r.inflight != nil || len(r.pending) > 0:
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
	return q.NotAfter != 0 && p.b.Latest() > q.NotAfter
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
func (p *Partition) allowed(r *run, e *message, q *schemas.StartRequest) bool {
	if q.Origin == nil {
		refused := p.b.RefuseType(q)
		// What stands in the inbox, as former versions put large ones there, could begin after a
		// refusal.
		if p.fullWith(len(e.body)) && e.log == noLog {
			refused = p.refusal()
		}
		if refused != nil {
			p.settleStart(r, e, verdict{refused: refused})
			return false
		}
		if large := largeOf(p.b, e, q, false); len(large) > 0 {
			p.storeLarge(r, e, q, large)
			return false
		}
		if e.log == noLog {
			p.quota.Promised += int64(len(e.body))
		}
	}
	p.reset(r, e, q)
	return true
}

// conflict is a start for a workflow id that has an open run.
func (p *Partition) conflict(r *run, e *message, q *schemas.StartRequest) {
	switch {
	case q.IDConflictPolicy == schemas.ConflictTerminateExisting:
		p.happen(r, &message{
			wid: r.wid, at: e.at, log: noLog,
			event: execution.Terminate{Request: &schemas.ExecutionRequest{
				WorkflowID: r.wid, Reason: "replaced by run " + q.Run, Identity: q.Identity,
				Origin: &schemas.RequestOrigin{Cause: schemas.CauseReplaced},
			}},
		})
		e.verdict.replaces = true
		p.startLater(r, e)
	case q.Signal != nil:
		if large := largeOf(p.b, e, q, true); len(large) > 0 {
			p.storeLarge(r, e, q, large)
			return
		}
		e.verdict = verdict{run: r.state.Run}
		e.event = execution.StartSignalOf(q)
		p.happen(r, e)
	case q.IDConflictPolicy == schemas.ConflictUseExisting:
		p.settleStart(r, e, verdict{run: r.state.Run})
	default:
		p.settleStart(r, e, verdict{run: r.state.Run, refused: alreadyStarted(r.wid, r.state.Run)})
	}
}

// settleStart answers a start that begins nothing, once everything it was judged by is in the
// history.
func (p *Partition) settleStart(r *run, e *message, v verdict) {
	e.verdict = v
	g := group{completions: []*completion{e.completion}}
	if e.answer != nil {
		g.answers = append(g.answers, func() { e.answer(r, nil) })
	}
	if v.refused != nil {
		g.answers = append(g.answers, func() { dropStored(p.b, e) })
	}
	if e.log != noLog {
		r.positions[e.log] = e.pos
	}
	p.queue(r, g)
}

// startLater: the close is on its way; the new run has a subject of its own and begins after it.
func (p *Partition) startLater(r *run, e *message) {
	r.queued = true
	r.mailbox = append([]*message{e}, r.mailbox...)
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

func notReusable(r *run, q *schemas.StartRequest) *schemas.Error {
	return schemas.Errorf(schemas.CodeAlreadyStarted,
		"workflow %q has been run already, as run %s (%s), and idReusePolicy is %s",
		r.wid, r.state.Run, r.state.Status, q.IDReusePolicy).
		InField("workflowId").About(r.wid, r.state.Run).
		WithHint("start under another id, or with idReusePolicy %s", schemas.ReuseAllow)
}

// checkFresh makes sure that a new run of a known id does not bear the run id of an older one: then
// the start is a late repeat, and gets that run's answer (P-5).
func (p *Partition) checkFresh(r *run, e *message, q *schemas.StartRequest) {
	r.loading = true
	r.mailbox = append([]*message{e}, r.mailbox...)
	env.ReadAsync(p.b, p.loop, func(ctx context.Context) (bool, error) {
		_, err := p.b.Reads.LastBySubject(ctx, p.b.NS.StreamHistory(p.n),
			p.b.NS.History(p.n, r.wid, q.Run))
		if errors.Is(err, natsconn.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	}, func(exists bool, err error) {
		if err != nil {
			p.log.WithError(err).
				WithField("workflow", r.wid).Warn("a run id cannot be looked up; trying again")
			p.loop.After(loadRetry, func() { r.loading = false; p.mark(r) })
			return
		}
		r.loading = false
		if exists {
			r.mailbox = r.mailbox[1:]
			p.answerOld(e, q)
			e.completion.Release()
		} else {
			e.fresh = true
		}
		p.loadedNow(r)
	})
}

// answerOld repeats the answer to a start whose run is not the latest of its id any more.
func (p *Partition) answerOld(e *message, q *schemas.StartRequest) {
	if q.Origin != nil {
		p.reportOld(e, q, 0)
		return
	}
	p.tellStarter(q,
		&schemas.StartResponse{V: schemas.Version, WorkflowID: q.WorkflowID, Run: q.Run})
}

// reset gives the workflow id a new run. It inherits the positions of its predecessor and of the
// owner in both logs, so that nothing its predecessor has consumed is applied again (P-3); only
// signals that waited for this very start are not after it.
func (p *Partition) reset(r *run, e *message, q *schemas.StartRequest) {
	read := p.intake.Read()
	waiting := p.takeOrphans(r.wid)
	for _, w := range append(waiting[:len(waiting):len(waiting)], r.mailbox...) {
		if w.log != noLog && !read[w.log].Before(w.pos) {
			read[w.log] = w.pos
			read[w.log].Sequence--
		}
	}
	if r.live() {
		start, _ := e.event.(execution.Start)
		start.Request = q
		start.Received, _ = latestIDs(r.state.ReceivedFromWorkflows(), p.b.BodyLimit()-len(e.body))
		e.event = start
	}
	p.renew(r, q, append(waiting, r.mailbox...))
	r.positions = [2]schemas.Position{
		r.positions[inboxLog].Later(read[inboxLog]), r.positions[signalLog].Later(read[signalLog]),
	}
	e.verdict = verdict{run: q.Run, started: true}
}

// renew makes the actor that of a new run of its workflow id.
func (p *Partition) renew(r *run, q *schemas.StartRequest, mailbox []*message) {
	p.armNever(r)
	if r.live() {
		p.dropAlarm(r)
	}
	*r = run{
		wid: r.wid, state: execution.New(r.wid, q.Run), mailbox: mailbox, positions: r.positions,
		waiters: r.waiters, use: r.use, uncovered: r.uncovered, unproved: r.unproved,
		owing: r.owing,
	}
	p.intake.Known.Add(r.wid)
	p.mark(r)
}

// continueAs begins the run that follows one which has continued as new, directly after it, with
// the signals that nobody has read: the actor takes no message of the workflow id in between (P-4).
func (p *Partition) continueAs(r *run) {
	q := r.state.Continuation()
	if q.Origin.UnreadSignals > 0 && r.windowFrom > r.state.Decision.Previous {
		p.loadWindow(r) // and again after it
		return
	}
	unread, sticky := r.state.Unread(r.window), r.sticky
	p.limitIDs(q)
	p.renew(r, q, r.mailbox)
	r.sticky = sticky // on the same worker first (S2-7)
	p.happen(r, &message{wid: r.wid, event: execution.Start{Request: q}, at: p.now(), log: noLog})
	p.copySignals(r, unread)
}

// copySignals writes signals of the run before into this one. They need not fit one record with its
// start: each is a group of its own.
func (p *Partition) copySignals(r *run, unread []schemas.Event) {
	for _, e := range unread {
		a, _ := e.Attributes.(*schemas.Signal)
		p.happen(r, &message{
			wid: r.wid, event: execution.Copied{EventID: e.ID, Signal: a}, at: p.now(), log: noLog,
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
	quota := p.b.BodyLimit() + env.HeaderBudget/2 - firstRecord(q)
	o.RequestIDs, quota = latestIDs(o.RequestIDs, quota)
	o.SignalIDs, _ = latestIDs(o.SignalIDs, quota)
}

func sameStart(s *schemas.WorkflowStarted, q *schemas.StartRequest) bool {
	return s.Run == q.Run || s.RequestID != "" && s.RequestID == q.RequestID
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

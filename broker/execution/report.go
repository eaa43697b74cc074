package execution

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/droverhq/drover/schemas"
)

// Token is what a worker shows to be believed: the attempt of the activity of the run it works for.
func Token(run string, scheduledID int64, attempt int) string {
	return run + "." + strconv.FormatInt(scheduledID, 10) + "." + strconv.Itoa(attempt)
}

// ParseToken is the inverse of [Token].
func ParseToken(token string) (run string, scheduledID int64, attempt int, err error) {
	last := strings.LastIndexByte(token, '.') // from the right: a run id may hold dots
	dot := strings.LastIndexByte(token[:max(last, 0)], '.')
	if dot > 0 {
		if scheduledID, err = strconv.ParseInt(token[dot+1:last], 10, 64); err == nil {
			attempt, err = strconv.Atoi(token[last+1:])
		}
	}
	if dot <= 0 || err != nil {
		return "", 0, 0, fmt.Errorf("token %q: want the one of the task, as it came", token)
	}
	return token[:dot], scheduledID, attempt, nil
}

// Awaits returns the activity that a report is the outcome of, if that is its current attempt, so
// that there is nothing about the report to refuse; else nil.
func (s *State) Awaits(m Report) *Activity {
	switch m.Report.Kind {
	case schemas.ReportSuccess, schemas.ReportCanceled, schemas.ReportFailed:
	default:
		return nil
	}
	if m.Bad != "" {
		return nil
	}
	return s.current(m)
}

// current returns the activity whose current attempt a report is about, if who reports has its
// list; else nil.
func (s *State) current(m Report) *Activity {
	run, id, attempt, err := m.of()
	act := s.Activities[id]
	if err != nil || run != s.Run || act == nil || attempt != act.Attempt || !act.onList(m.List) {
		return nil
	}
	return act
}

// Grants tells whether the answer to a question is simply yes, also if the outcome of somebody else
// is in the inbox: nobody has begun with the attempt, nobody does so without asking, and it is
// time.
func (s *State) Grants(m Report, now schemas.Timestamp) bool {
	act := s.current(m)
	return act != nil && act.Scheduled.NotIdempotent && act.begins(act.Attempt, now)
}

// begins tells whether a worker that asks now may begin with an attempt.
func (a *Activity) begins(attempt int, now schemas.Timestamp) bool {
	return a.Started == 0 && attempt == a.Attempt && a.NotBefore <= now && !a.over(now)
}

func (st *step) report(m Report) {
	r := m.Report
	run, id, attempt, err := m.of()
	if err != nil {
		st.dead(DeadStaleToken, "%s", err)
		return
	}
	act := st.Activities[id]
	if act != nil && run == st.Run && !act.onList(m.List) {
		st.dead(DeadForeignList, "the activity of event %d is on list %q, and list %q reported it",
			id, act.Scheduled.List, m.List)
		return
	}
	switch r.Kind {
	case schemas.ReportBegin:
		st.begin(r, run, act, attempt)
		return
	case schemas.ReportLost:
		st.lost(r, run, act, attempt)
		return
	case schemas.ReportReturned:
		if run == st.Run && act != nil && act.returns(r, attempt) {
			st.returned(r, act)
		}
		return
	}
	switch {
	case run != st.Run:
		st.dead(DeadStaleToken, "the token is for run %s; the open run is %s", run, st.Run)
	case act == nil:
		if r.Kind != schemas.ReportStarted {
			st.dead(DeadClosedActivity, "the activity of event %d is closed", id)
		}
	case attempt < act.Attempt && r.Kind == schemas.ReportStarted:
		// overtaken by its outcome, which went straight to the owner
	case attempt != act.Attempt:
		st.dead(DeadStaleToken,
			"the token is for attempt %d of the activity of event %d; the current one is %d",
			attempt, id, act.Attempt)
	case m.Bad != "":
		st.dead(DeadInvalid, "%s", m.Bad)
	default:
		st.outcome(r, act)
	}
}

// outcome applies what a worker says of its attempt. An outcome of an attempt whose start was not
// reported carries it.
func (st *step) outcome(r *schemas.Report, act *Activity) {
	switch r.Kind {
	case schemas.ReportStarted, schemas.ReportSuccess, schemas.ReportCanceled, schemas.ReportFailed:
	default:
		st.dead(DeadInvalid,
			"kind %q: want started, success, failed, canceled, returned, begin or lost", r.Kind)
		return
	}
	fresh := act.Started == 0
	if fresh {
		st.begun(r, act)
	}
	started := act.Started
	switch r.Kind {
	case schemas.ReportStarted:
		if fresh && act.Offered {
			// from now on a message tells of it, whatever becomes of us: see begin
			st.do(Dispatch{ScheduledID: act.ScheduledID, Store: true})
		}
		return
	case schemas.ReportSuccess:
		st.emit(&schemas.ActivitySuccess{
			ScheduledEventID: act.ScheduledID, StartedEventID: started, Result: r.Result,
		})
	case schemas.ReportCanceled:
		if act.CancelRequested == 0 {
			st.emit(&schemas.ActivityFailed{
				ScheduledEventID: act.ScheduledID, StartedEventID: started, Reason: "canceled",
				Details: r.Details,
			})
			break
		}
		st.emit(&schemas.ActivityCanceled{
			ScheduledEventID: act.ScheduledID, StartedEventID: started,
			LatestCancelRequestedEventID: act.CancelRequested, Details: r.Details,
		})
	case schemas.ReportFailed:
		st.said += len(r.Details)
		reason := cmp.Or(r.Reason, schemas.ReasonFailed)
		if again := st.retry(act, reason); again != nil && !r.Final {
			again.Details = r.Details
			st.emit(again)
			return
		}
		st.emit(&schemas.ActivityFailed{
			ScheduledEventID: act.ScheduledID, StartedEventID: started, Reason: reason,
			Details: r.Details, Final: r.Final,
		})
	}
	st.wake()
}

// begun writes ActivityStarted. The work of an attempt that was not announced began Elapsed ago;
// the history cannot go back after its last event.
func (st *step) begun(r *schemas.Report, act *Activity) {
	now := st.now
	if r.Elapsed.Limited() {
		st.now -= schemas.Timestamp(r.Elapsed)
	}
	st.emit(&schemas.ActivityStarted{
		ScheduledEventID: act.ScheduledID, Attempt: act.Attempt, Identity: r.Identity,
		TaskSequence: r.TaskSequence, Nonce: r.Nonce,
		Offered: r.Kind == schemas.ReportStarted && r.Offered ||
			r.Kind == schemas.ReportBegin && r.TaskSequence == 0,
	})
	st.now = now
}

// begin answers the question of a worker that holds a task: may this delivery run?
//
// Only a redelivery of the message that the current attempt began with may interrupt it (P-7): any
// other copy of the task comes from a repeated effect and says nothing about the worker.
//
// The worker of an offer has no message. The one that was stored after its start says nothing about
// it either, but who holds it asks again and again, and each time the worker is asked.
func (st *step) begin(r *schemas.Report, run string, act *Activity, attempt int) {
	switch {
	case run != st.Run || act == nil:
		st.deny(r, "the activity is closed")
	case act.Started != 0 && r.Nonce != "" && r.Nonce == act.Nonce && r.TaskSequence == act.TaskSequence:
		st.permit(r, act)
	case r.Nonce != "" && slices.Contains(act.Former, r.Nonce):
		// It has begun, was taken for lost, and asks still: its worker stood still, or the answer
		// did not come. Whoever has the task now would be interrupted by it, ask, and interrupt it
		// in turn.
		st.do(Permit{
			To: r.ReplyTo,
			Permission: schemas.Permission{
				Nonce: r.Nonce, Leave: true,
				Reason: "this delivery was taken for lost, and another one has the task",
			},
		})
	case act.Started == 0 && attempt == act.Attempt && act.over(st.now):
		// its timeout is on its way
		st.deny(r, "the activity's time was over before it began")
	case act.begins(attempt, st.now):
		st.begun(r, act)
		st.permit(r, act)
	case act.Started != 0 && r.Redelivered && r.TaskSequence != 0 && r.TaskSequence == act.TaskSequence:
		st.interrupt(r, act)
	case act.Started != 0 && r.TaskSequence != 0 && r.TaskSequence == act.TaskSequence:
		// A server that was killed counts deliveries anew. Its first one says nothing about the
		// worker, and dropping the task would end the lease that alone tells of its loss.
		st.do(Permit{
			To: r.ReplyTo,
			Permission: schemas.Permission{
				Nonce: r.Nonce, Leave: true, Reason: "another delivery of this task is at work",
			},
		})
	case act.Offered && attempt == act.Attempt:
		st.do(Permit{
			To: r.ReplyTo,
			Permission: schemas.Permission{
				Nonce: r.Nonce, Leave: true,
				Reason: "the task was offered to a worker, who is being asked",
			},
		})
		st.inquire(act)
	default:
		st.deny(r, "another delivery of this task is at work")
	}
}

// over tells whether all the time that the activity had has passed.
func (a *Activity) over(now schemas.Timestamp) bool {
	d := a.Scheduled.ScheduleToCloseTimeout
	return d.Limited() && a.ScheduledBase.Add(d) <= now
}

func (st *step) inquire(act *Activity) {
	st.do(Inquire{
		ScheduledID: act.ScheduledID, Attempt: act.Attempt, Worker: act.Worker,
		Token: Token(st.Run, act.ScheduledID, act.Attempt),
	})
}

// gone: the worker of an offer does not answer.
func (st *step) gone(m Gone) {
	act := st.Activities[m.ScheduledID]
	if m.Run == st.Run && act != nil && act.Attempt == m.Attempt && act.Offered {
		st.tryAgain(act, false)
	}
}

// returns tells whether a worker that gives a task back is the one that has the current attempt, as
// far as is known. The token of one that was given its permission, and has not heard of it, is that
// of the attempt before.
func (a *Activity) returns(r *schemas.Report, attempt int) bool {
	if a.Started == 0 || a.Offered {
		return attempt == a.Attempt
	}
	if r.Nonce != "" && a.Nonce != "" && r.Nonce != a.Nonce || r.TaskSequence != a.TaskSequence {
		return false
	}
	return attempt == a.Attempt || r.Nonce != "" && r.Nonce == a.Nonce
}

// returned: a worker has let a task go that it was offered, or stops in the midst of one that it
// had pulled. The message of the latter comes to somebody else, who drops it, since another attempt
// has one of its own. What has not begun goes on with the message that it has.
func (st *step) returned(r *schemas.Report, act *Activity) {
	if act.Started != 0 || r.TaskSequence == 0 {
		st.tryAgain(act, true)
	}
}

// tryAgain puts the task of an activity on its list anew. An attempt that has begun is interrupted.
func (st *step) tryAgain(act *Activity, returned bool) {
	if act.Started != 0 && !st.interrupted(act, returned) {
		return
	}
	if act.NotBefore <= st.now {
		st.do(Dispatch{ScheduledID: act.ScheduledID, Store: true})
	}
}

// interrupt follows the loss of a worker whose task another one has: an idempotent activity that is
// still wanted gets its next attempt there, any other ends.
func (st *step) interrupt(r *schemas.Report, act *Activity) {
	if act.over(st.now) { // its timeout is on its way, and would end the next attempt at once
		st.deny(r, "the activity's time was over when its worker was missed")
		return
	}
	if st.interrupted(act, false) {
		st.begun(r, act)
		st.permit(r, act)
		return
	}
	st.deny(r, "its worker was lost and the activity must not run again")
}

// interrupted writes that the worker of an attempt is lost, or has given it back. It reports
// whether the activity may run again; otherwise it has failed, or is canceled if that was asked
// for: nobody wants it done again.
func (st *step) interrupted(act *Activity, returned bool) (again bool) {
	started, row := act.Started, act.Interruptions
	if act.LastBeat != 0 {
		row = 0
	}
	if !returned {
		row++
	}
	st.emit(&schemas.ActivityInterrupted{
		ScheduledEventID: act.ScheduledID, StartedEventID: started, Attempt: act.Attempt,
		Identity: act.Worker, HeartbeatDetails: act.BeatDetails,
		Interruptions: row, Returned: returned,
	})
	switch most := act.mostInterruptions(); {
	case act.Scheduled.NotIdempotent:
		st.emit(&schemas.ActivityFailed{
			ScheduledEventID: act.ScheduledID, StartedEventID: started,
			Reason: schemas.ReasonInterrupted,
		})
	case act.CancelRequested != 0:
		st.emit(&schemas.ActivityCanceled{
			ScheduledEventID: act.ScheduledID, StartedEventID: started,
			LatestCancelRequestedEventID: act.CancelRequested,
		})
	case !returned && most > 0 && row >= most:
		st.emit(&schemas.ActivityFailed{
			ScheduledEventID: act.ScheduledID, StartedEventID: started,
			Reason: schemas.ReasonInterrupted, Details: act.lastLosses(),
		})
	default:
		return true
	}
	st.wake()
	return false
}

// lost answers the master, which holds a task that no worker is left to take: the interim state of
// an attempt that has begun is reverted, or set to the error state. The same rule as for a worker
// that holds a redelivery (P-7): only the message that the current attempt began with says anything
// about its worker.
func (st *step) lost(r *schemas.Report, run string, act *Activity, attempt int) {
	done := schemas.LostGone
	switch {
	case run != st.Run || act == nil:
	case act.Started == 0 && attempt == act.Attempt:
		done = schemas.LostStands
	case act.Offered && attempt == act.Attempt:
		done = schemas.LostHeld
		st.inquire(act)
	case act.Started != 0 && r.Redelivered && r.TaskSequence != 0 && r.TaskSequence == act.TaskSequence:
		wanted := act.CancelRequested == 0
		switch {
		case st.interrupted(act, false):
			done = schemas.LostReverted
			st.do(Dispatch{ScheduledID: act.ScheduledID})
		case act.Scheduled.NotIdempotent || wanted:
			done = schemas.LostFailed
		}
	}
	st.do(Permit{To: r.ReplyTo, Permission: schemas.Permission{Nonce: r.Nonce, Done: done}})
}

func (st *step) permit(r *schemas.Report, act *Activity) {
	st.do(Permit{To: r.ReplyTo, Permission: schemas.Permission{
		Nonce: r.Nonce, Go: true, Attempt: act.Attempt,
		Token: Token(st.Run, act.ScheduledID, act.Attempt), HeartbeatDetails: act.Resume,
	}})
}

func (st *step) deny(r *schemas.Report, reason string) {
	st.do(Permit{To: r.ReplyTo, Permission: schemas.Permission{Nonce: r.Nonce, Reason: reason}})
}

// retry returns what is to be written if the broker repeats the attempt that just failed, or nil.
// What the next attempt goes on from has its place in the record before what only tells of this
// one: its details are for the caller to add.
func (st *step) retry(act *Activity, reason string) *schemas.ActivityRetryScheduled {
	p := act.Scheduled.Retry
	if p == nil || act.CancelRequested != 0 ||
		p.MaximumAttempts > 0 && act.tries() >= p.MaximumAttempts ||
		slices.Contains(p.NonRetryable, reason) {
		return nil
	}
	next := max(st.now, st.LastTime).Add(p.Pause(act.tries()))
	if d := act.Scheduled.ScheduleToCloseTimeout; d.Limited() && next >= act.ScheduledBase.Add(d) {
		return nil
	}
	return &schemas.ActivityRetryScheduled{
		ScheduledEventID: act.ScheduledID, StartedEventID: act.Started, Attempt: act.Attempt,
		Cause: reason, HeartbeatDetails: st.room(act.BeatDetails), NextTime: next,
	}
}

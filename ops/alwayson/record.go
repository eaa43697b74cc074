package alwayson

import (
	"fmt"
	"strconv"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/runid"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// record is an always-on workflow and what its steps make of it. Times are those of the server.
type record ops.AlwaysOnRecord

// id is the workflow id.
func (r *record) id() string { return r.AlwaysOn.Start.WorkflowID }

// rests tells whether nothing is to be begun: it is stopped, or its last run ended in a way after
// which it stays down.
func (r *record) rests() bool { return r.Stopped || r.finished() }

// finished tells whether its last run ended in a way after which it is not begun again.
func (r *record) finished() bool {
	return !r.Open && r.AlwaysOn.Restart == ops.RestartOnFailure &&
		(r.Status == schemas.StatusCompleted || r.Status == schemas.StatusCanceled)
}

// begin is written before the next run is started.
func (r *record) begin(ns subject.Namespace, now time.Time) {
	r.Starts++
	seed := ns.API("always") // no two namespaces have one
	for _, part := range []string{r.id(), r.Incarnation, strconv.FormatInt(r.Starts, 10)} {
		seed += fmt.Sprintf(".%d.%s", len(part), part)
	}
	r.Run, r.StartedAt = runid.Of(now.UnixMilli(), seed), schemas.At(now)
	r.Open, r.Found, r.Again, r.Refusal, r.NotBefore = true, false, false, "", 0
}

// latest is until when the start may begin its run.
func (r *record) latest() time.Time { return r.StartedAt.Time().Add(startWithin) }

// finds takes a run that somebody else has started for the one to follow.
func (r *record) finds(run string) { r.Run, r.Found = run, true }

// ends writes down how the run ended.
func (r *record) ends(o *drover.Outcome, now time.Time) {
	r.close(o.Status, o.Reason, now)
	switch o.Status {
	case schemas.StatusFailed, schemas.StatusTimedOut, schemas.StatusTerminated:
		if !r.Stopped && !r.Again { // else somebody wanted it
			r.fails(now)
		}
	default:
		r.Failures = 0
	}
	if r.Again {
		r.Again, r.Status = false, ""
	}
	r.schedule(now)
}

// loses writes down that there is nothing to be learnt of the run: it never began, or is purged.
func (r *record) loses(now time.Time) {
	r.close("", "it did not begin in time, or its history is purged", now)
	r.schedule(now)
}

// refuses writes down that the start was refused.
func (r *record) refuses(why error, now time.Time) {
	r.Open, r.Refusal = false, why.Error()
	r.Failures++
	r.schedule(now)
}

func (r *record) close(status schemas.Status, reason string, now time.Time) {
	r.Open, r.Status, r.EndReason, r.EndedAt = false, status, reason, schemas.At(now)
}

// fails counts a bad end.
func (r *record) fails(now time.Time) {
	if now.Sub(r.StartedAt.Time()) >= max(steady, pauseAfter(r.Failures)) {
		r.Failures = 0
	}
	r.Failures++
}

// schedule says when the next run begins, if one does.
func (r *record) schedule(now time.Time) {
	if r.finished() {
		r.NotBefore = 0
		return
	}
	at := now.Add(pauseAfter(r.Failures))
	if least := r.StartedAt.Time().Add(apart); at.Before(least) {
		at = least
	}
	r.NotBefore = schemas.At(at)
}

// stop keeps it down, and tells whether that changes anything.
func (r *record) stop(q *ops.AlwaysRequest, now time.Time) bool {
	if r.Stopped && r.KeepRun == q.KeepRun && r.Terminate == q.Terminate {
		return false
	}
	r.Stopped, r.StoppedAt, r.StoppedBy, r.Reason = true, schemas.At(now), q.Identity, q.Reason
	r.KeepRun, r.Terminate, r.Again = q.KeepRun, q.Terminate, false
	return true
}

// start undoes a stop, and has the next run begun without a pause. It tells whether that changes
// anything.
func (r *record) start() bool {
	if !r.Stopped && r.Open {
		return false
	}
	r.Again = r.Open && !r.KeepRun // the run is being ended
	r.Stopped, r.StoppedAt, r.StoppedBy, r.Reason, r.KeepRun, r.Terminate = false, 0, "", "", false, false
	r.Failures, r.NotBefore = 0, 0
	if !r.Open {
		r.Status, r.EndReason = "", ""
	}
	return true
}

// becomes takes other contents, from the next start on. What waits after failures does not wait any
// more.
func (r *record) becomes(a ops.AlwaysOn) {
	r.AlwaysOn = a
	if !r.Open {
		r.Failures, r.NotBefore, r.Refusal = 0, 0, ""
	}
}

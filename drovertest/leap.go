package drovertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

const (
	// early is how long before something is due everything runs again. A server that has just
	// begun may leave a first question without an answer; it is asked again two seconds later, and
	// a lost request for work is given up after seven.
	early = 8 * time.Second
	// worthwhile is the shortest leap: stopping and starting costs as much as a minute of waiting.
	worthwhile = 2 * time.Minute
	// After a leap that somebody has disturbed at once, the next one waits, longer each time: a
	// client that always talks would turn each leap into a loss.
	undisturbed  = 10 * time.Second
	firstPenalty = time.Minute
	lastPenalty  = 6 * time.Hour
)

// leapPause says when the next leap may begin.
type leapPause struct {
	notBefore time.Time
	penalty   time.Duration
	// seen is what the open runs looked like at a time.
	seen   string
	seenAt time.Time
}

// leap passes the time until shortly before the next thing is due, or before until, with everything
// stopped. It returns at once when that is not worth it or when something goes on. When another
// goroutine leaps, it waits for the end of that.
func (e *Env) leap(until time.Time) {
	e.t.Helper()
	if !e.virtual || !e.envLock.enterToLeap(until) {
		return
	}
	defer e.envLock.leave()
	if e.roles == nil || time.Until(until) < worthwhile || time.Now().Before(e.leapPause.notBefore) {
		return
	}
	due, err := e.nextDue()
	if err != nil {
		e.log.WithError(err).Debug("no leap")
		return
	}
	wake := earlier(until, due).Add(-early)
	if time.Until(wake) < worthwhile {
		return
	}
	if err := e.sleep(wake); err != nil {
		e.t.Fatalf("drovertest: leap: %v", err)
	}
}

var errChanged = errors.New("something has just happened")

// nextDue is when the next thing is due, zero if nothing is. It is an error if something goes on,
// or did since the last look: an alarm may then be about to move.
func (e *Env) nextDue() (due time.Time, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.t.Context()), look)
	defer cancel()
	var seen strings.Builder
	var lonely []schemas.ExecutionInfo
	for _, status := range []schemas.Status{schemas.StatusOpen, schemas.StatusPaused} {
		for line, err := range e.Client.List(ctx, drover.ListOptions{Status: status}) {
			if err != nil {
				return due, err
			}
			run, err := e.Client.Run(line.WorkflowID, line.Run).Describe(ctx)
			if err != nil {
				return due, err
			}
			if busy := goingOn(run); busy != "" {
				return due, fmt.Errorf("workflow %q: %s", line.WorkflowID, busy)
			}
			if unanswered(run) {
				lonely = append(lonely, line)
			}
			due = earlier(due, firstOf(run))
			fmt.Fprintln(&seen, line.Run, run.Execution.Events, run.Alarm)
		}
	}
	for lock, err := range e.Client.Locks(ctx, drover.LocksOptions{}) {
		if err != nil {
			return due, err
		}
		due = earlier(due, freed(lock))
	}
	before, at := e.leapPause.seen, e.leapPause.seenAt
	if before == seen.String() && time.Since(at) >= look && !at.IsZero() {
		for _, run := range lonely {
			e.log.WithField("workflow", run.WorkflowID).WithField("type", run.Type).
				Warn("the run waits for a decider, and nobody listens")
		}
		return due, nil
	}
	if before != seen.String() || at.IsZero() {
		e.leapPause.seen, e.leapPause.seenAt = seen.String(), time.Now()
	}
	return due, errChanged
}

// goingOn tells what a run does that is not waiting for its alarm.
func goingOn(run *schemas.DescribeResponse) string {
	if run.Execution.Status.Closed() {
		return "it has just ended"
	}
	if run.Alarm == 0 && !firstOf(run).IsZero() {
		return "its alarm is not set yet"
	}
	if run.Decision != "" && run.Execution.Status != schemas.StatusPaused && !unanswered(run) {
		return "its decider is " + run.Decision
	}
	for _, a := range run.Activities {
		if a.StartedAt != 0 {
			return fmt.Sprintf("activity %q runs", a.ActivityID)
		}
	}
	for _, c := range run.Children {
		if !c.Started {
			return fmt.Sprintf("child %q is being started", c.WorkflowID)
		}
	}
	return ""
}

// unanswered tells whether a run waits for a decider and nobody listens: only who comes, and interrupts
// the leap, moves it, or what is due. Of activities, and of a limit of that wait, a description
// does not tell all that is due; there the alarm counts.
func unanswered(run *schemas.DescribeResponse) bool {
	return run.Decision == schemas.DecisionForlorn && len(run.Activities) == 0 &&
		!run.Started.TaskScheduleToStartTimeout.Limited()
}

// firstOf is when the first of all that a run waits for is due, zero if nothing is. Once it is set,
// the alarm alone would do, but for a run that is forsaken: its alarm is for another owner, who
// would ask for the decider.
func firstOf(run *schemas.DescribeResponse) time.Time {
	due := optional(run.Timeout)
	if !unanswered(run) {
		due = earlier(due, optional(run.Alarm))
	}
	for _, t := range run.Timers {
		due = earlier(due, optional(t.Due))
	}
	for _, a := range run.Activities {
		due = earlier(due, optional(a.Deadline))
	}
	return due
}

// freed is when the first lease of a lock runs out for which others wait, zero if that is never. No
// alarm tells of it.
func freed(lock schemas.LockRecord) (due time.Time) {
	if len(lock.Waiters) == 0 {
		return due
	}
	for _, h := range lock.Holders {
		due = earlier(due, optional(h.Expires()))
	}
	return due
}

func optional(t schemas.Timestamp) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return t.Time()
}

// earlier returns the earlier of two times; zero is none.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// sleep stops everything but deciders and client until wake, or until somebody wants something.
func (e *Env) sleep(wake time.Time) error {
	began := time.Now()
	p, err := e.stopForLeap()
	if err != nil {
		return err
	}
	alarm := time.NewTimer(time.Until(wake))
	defer alarm.Stop()
	select {
	case <-alarm.C:
		e.leapPause = leapPause{}
	case <-e.envLock.interrupts:
		e.leapPause.disturbed(time.Since(began))
	}
	return e.startAfterLeap(p)
}

// disturbed notes that a leap was cut short.
func (n *leapPause) disturbed(after time.Duration) {
	if after > undisturbed {
		*n = leapPause{}
		return
	}
	n.penalty = min(max(2*n.penalty, firstPenalty), lastPenalty)
	n.notBefore = time.Now().Add(n.penalty)
}

func (e *Env) stopForLeap() (*standIn, error) {
	for _, s := range e.runningWorkers {
		if s.pauses() {
			s.end()
		}
	}
	p, err := newStandIn(e.ns, e.conn.MaxPayload(), e.envLock.interrupt)
	if err != nil {
		return nil, err
	}
	arrived := e.reconnected()
	e.roles.shutdown()
	e.roles = nil
	e.stopServer(p)
	return p, arrived(context.WithoutCancel(e.t.Context()))
}

func (e *Env) startAfterLeap(p *standIn) error {
	again := e.reconnected()
	e.serverSwitch.open(nil)
	p.close()
	if err := e.resume(again); err != nil {
		return err
	}
	for _, s := range e.runningWorkers {
		if s.pauses() {
			s.begin()
		}
	}
	return nil
}

package broker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/rootcause"
	"github.com/droverhq/drover/schemas"
)

// because explains in one sentence what a run waits for, with the names and times that matter.
func (p *partition) because(r *run) string {
	s := r.state
	switch {
	case s.Closed():
		return closedBecause(s)
	case s.Paused != nil && s.Paused.Cause == schemas.CauseDeciderAttempts:
		return fmt.Sprintf("it is parked: %s; mend the decider of type %q, then: drover resume %s", s.Paused.Reason, s.Start.WorkflowType, s.WorkflowID)
	case s.Paused != nil:
		return fmt.Sprintf("it is paused%s; go on with: drover resume %s", reason(s.Paused.Reason), s.WorkflowID)
	case r.noPoller, r.reasks > 0 && r.ask != nil && !r.ask.confirmed: // it is asked again now and then, in case one listens by now
		return fmt.Sprintf("no decider for type %q is listening (decision wanted since %s); start one in namespace %q",
			s.Start.WorkflowType, ago(p.now(), s.Decision.ScheduledBase), p.b.o.Namespace)
	case r.backingUp:
		w, _ := s.WantsDecider(p.b.config())
		return fmt.Sprintf("its decider of type %q failed or timed out %d times in a row and is asked again at %s%s", s.Start.WorkflowType, s.Decision.Failures, w.NotBefore, refusedLast(s))
	case r.ask != nil && !r.ask.confirmed:
		return fmt.Sprintf("a decider of type %q is being asked since %s%s", s.Start.WorkflowType, ago(p.now(), r.ask.at), failedBefore(s))
	case r.ask != nil:
		return fmt.Sprintf("a decider of type %q is deciding since %s%s", s.Start.WorkflowType, ago(p.now(), r.ask.at), failedBefore(s))
	}
	return openBecause(s, p.now(), p.b.locks.get)
}

// failedBefore tells that the decider which is asked has failed at this.
func failedBefore(s *execution.State) string {
	if s.Decision.Failures == 0 {
		return ""
	}
	return fmt.Sprintf("; it failed or timed out %s before%s", count(s.Decision.Failures, "time", "times"), refusedLast(s))
}

// refusedLast tells of a decision of which everything was refused, which counts as a failed one.
func refusedLast(s *execution.State) string {
	if s.Decision.Refusal == "" {
		return ""
	}
	return "; everything that it decided was refused, " + s.Decision.Refusal
}

// why answers with the sentence. If the run waits for a worker, it looks first how the list stands; if for another attempt, how
// the last one went.
func (p *partition) why(r *run, reply func(any)) {
	a := &schemas.WhyResponse{V: schemas.Version, Run: r.state.Run, Status: r.state.Status, Because: p.because(r) + nearsLimit(r.state, p.b.config()) + keptOpen(r.state) + p.letterOf(r)}
	list, consumer := "", ""
	if r.open() && strings.HasPrefix(a.Because, noWorker) {
		for _, act := range r.state.OpenActivities() {
			if act.Started == 0 && act.NotBefore <= p.now() {
				list, consumer = act.Scheduled.List, subject.ConsumerOf(act.Scheduled.TaskPriority)
				break
			}
		}
	}
	if t := p.triesOf(r); list == "" && t != nil {
		wid := r.wid
		readAsync(p.b, p.loop, func(ctx context.Context) (string, error) {
			return p.b.failed(ctx, p.n, wid, a.Run, t)
		}, func(clause string, err error) {
			if err != nil {
				p.log.WithError(err).WithField("workflow", wid).Debug("how the last attempt went is not known")
			}
			a.Because += clause
			reply(a)
		})
		return
	}
	if list == "" {
		p.withAlwaysOn(r.state, a.Because, func(because string) {
			a.Because = because
			reply(a)
		})
		return
	}
	readAsync(p.b, p.loop, func(ctx context.Context) (*schemas.TaskListInfo, error) {
		i := &schemas.TaskListInfo{List: list}
		exists, err := p.b.workersOf(ctx, i)
		if err != nil || !exists {
			return nil, err
		}
		if len(i.Missing) > 0 {
			p.b.lookAtList(list, 0)
		}
		i.Missing = slices.DeleteFunc(i.Missing, func(name string) bool { return name != consumer })
		return i, nil
	}, func(i *schemas.TaskListInfo, err error) {
		if err != nil {
			p.log.WithError(err).WithField("list", list).Debug("how the list stands is not known")
		}
		if refused := p.refusedLists[list]; i == nil && err == nil && refused != nil {
			a.Because += fmt.Sprintf("; the list cannot be made: %v", refused.err)
		} else {
			a.Because += listStands(i)
		}
		reply(a)
	})
}

// noWorker begins the sentence about a task that waits.
const noWorker = "no worker has taken activity "

// listStands says how a list stands; nil if that is not known.
func listStands(i *schemas.TaskListInfo) string {
	switch {
	case i == nil:
		return "; start a worker of that list"
	case i.PausedUntil != 0:
		return fmt.Sprintf("; somebody has paused a consumer of the list until %s: nats consumer resume", i.PausedUntil.Time().UTC().Format(time.RFC3339))
	case len(i.Missing) > 0:
		return fmt.Sprintf("; the consumer %s of the list is not there, as somebody has deleted it: %s", i.Missing[0], schemas.MissingHint)
	case len(i.Untaken) > 0:
		return fmt.Sprintf("; no consumer of the list takes %s, as somebody has changed one: %s", strings.Join(i.Untaken, " and "), schemas.UntakenHint)
	case len(i.GivingUp) > 0:
		return fmt.Sprintf("; its consumers %s give a task up behind so many deliveries, as somebody has changed them: %s", strings.Join(i.GivingUp, " and "), schemas.GivingUpHint)
	case i.Workers > 0:
		return fmt.Sprintf("; %s there for tasks, and may not know the type: see the log", count(i.Workers, "worker waits", "workers wait"))
	case i.Working > 0 && i.Pending == 0: // more workers would find nothing to do
		return fmt.Sprintf("; its workers have %s in hand, and none waits: if it is this one, its worker has not said that it began: see its log, and drover dead",
			count(int(i.Working), "task", "tasks"))
	case i.Working > 0:
		return fmt.Sprintf("; its workers are busy with %s, %s: start more of them",
			count(int(i.Working), "task", "tasks"), count(int(i.Pending), "task waits", "tasks wait"))
	}
	return fmt.Sprintf("; nobody works on that list, where %s: start a worker", count(int(i.Pending), "task waits", "tasks wait"))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func closedBecause(s *execution.State) string {
	if s.Close == nil {
		return "it is closed"
	}
	because := fmt.Sprintf("it is closed: %s at %s", s.Status, s.Close.Time)
	if r := resultOf(s); r.Reason != "" {
		because += ", reason: " + r.Reason
		if cause := rootcause.Of(r.Details); cause != "" {
			because += ", cause: " + cause
		}
	}
	return because
}

// openBecause reads off the state what an open run waits for. If several things are open the sentence begins with what can
// happen at any moment, and names the soonest of those that have a time.
func openBecause(s *execution.State, now schemas.Timestamp, lock func(key string) *schemas.LockRecord) string {
	waits, timed := openActivities(s, now)
	waits = append(waits, openLocks(s, now, lock)...)
	timed = append(timed, openTimers(s, now)...)
	slices.SortStableFunc(timed, func(a, b wait) int { return cmp.Compare(a.at, b.at) })
	waits = append(waits, openChildren(s, now)...)
	for _, x := range s.OpenExternals() {
		kind, target, _ := s.RequestOf(x)
		waits = append(waits, wait{kind: waitRequest, text: fmt.Sprintf("its %s to workflow %q is not answered yet", kind, target)})
	}
	waits = append(waits, openStates(s, now)...)
	switch {
	case len(waits)+len(timed) > 0:
		return tellWaits(waits, timed)
	case s.Decision.Scheduled != 0 || s.Decision.Started != 0:
		return fmt.Sprintf("a decider of type %q is about to be asked", s.Start.WorkflowType)
	}
	end := "; it never times out"
	if d := s.Start.ExecutionStartToCloseTimeout; d.Limited() {
		end = ", or times out at " + firesAt(now, s.StartBase.Add(d))
	}
	return "its decider left nothing open: it waits for a signal" + end
}

// wait is one thing that an open run waits for. at is when it comes by itself; 0 if that is not known.
type wait struct {
	kind waitKind
	at   schemas.Timestamp
	text string
}

type waitKind int

const (
	waitActivity waitKind = iota
	waitTimer
	waitChild
	waitRequest
	waitLock
	waitState
)

var waitNames = [...][2]string{
	waitActivity: {"activity", "activities"}, waitTimer: {"timer", "timers"}, waitChild: {"child", "children"}, waitRequest: {"request", "requests"},
	waitLock: {"lock", "locks"}, waitState: {"request for a state key", "requests for state keys"},
}

// openActivities puts the activities that run before those that wait for a worker; timed are those whose next attempt is
// not due yet.
func openActivities(s *execution.State, now schemas.Timestamp) (waits, timed []wait) {
	var waiting []wait
	for _, a := range s.OpenActivities() {
		o := a.Scheduled
		switch {
		case a.Started != 0:
			waits = append(waits, wait{kind: waitActivity, text: running(a, now)})
		case a.NotBefore > now:
			timed = append(timed, wait{kind: waitActivity, at: a.NotBefore, text: fmt.Sprintf("activity %q of type %q begins its attempt %d at %s", o.ActivityID, o.ActivityType, a.Attempt, a.NotBefore)})
		default:
			waiting = append(waiting, wait{kind: waitActivity, text: fmt.Sprintf(noWorker+"%q of type %q from list %q since %s",
				o.ActivityID, o.ActivityType, o.List, ago(now, max(a.ScheduledBase, a.NotBefore)))})
		}
	}
	return append(waits, waiting...), timed
}

// running tells of an activity at work: where, since when, when it was last heard of and when it times out.
func running(a *execution.Activity, now schemas.Timestamp) string {
	text := fmt.Sprintf("activity %q of type %q runs on %s since %s, attempt %d", a.Scheduled.ActivityID, a.Scheduled.ActivityType,
		cmp.Or(a.Worker, "a worker"), ago(now, a.StartedBase), a.Attempt)
	if a.CancelRequested != 0 {
		text += ", asked to cancel"
	}
	if a.Scheduled.HeartbeatTimeout.Limited() {
		text += fmt.Sprintf(", last heard of %s ago", round(now.Sub(max(a.StartedBase, a.LastBeat))))
	}
	if at := deadlineOf(a); at != 0 {
		text += fmt.Sprintf(", times out at %s", firesAt(now, at))
	}
	return text
}

func openTimers(s *execution.State, now schemas.Timestamp) (timed []wait) {
	for _, id := range slices.Sorted(maps.Keys(s.Timers)) {
		at := s.Timers[id].Due()
		timed = append(timed, wait{kind: waitTimer, at: at, text: fmt.Sprintf("timer %q expires at %s", id, firesAt(now, at))})
	}
	return timed
}

func openChildren(s *execution.State, now schemas.Timestamp) (waits []wait) {
	for _, c := range s.OpenChildren() {
		does := "is to start"
		if c.Started != 0 {
			does = "runs"
		}
		waits = append(waits, wait{kind: waitChild, text: fmt.Sprintf("child workflow %q of type %q %s since %s", c.Scheduled.WorkflowID, c.Scheduled.WorkflowType, does, ago(now, c.At))})
	}
	return waits
}

// tellWaits names the first of what may come at any moment and the soonest of what has a time, and counts the rest.
func tellWaits(waits, timed []wait) string {
	var told []string
	if len(waits) > 0 {
		told, waits = append(told, waits[0].text), waits[1:]
	}
	if len(timed) > 0 {
		told, timed = append(told, timed[0].text), timed[1:]
	}
	var rest [len(waitNames)]int
	for _, w := range append(waits, timed...) {
		rest[w.kind]++
	}
	for kind, n := range rest {
		if n > 0 {
			told = append(told, more(n, waitNames[kind][0], waitNames[kind][1]))
		}
	}
	return strings.Join(told, "; ")
}

// lateAlarm is how long an alarm may be late before that is worth a word, as in the audit.
const lateAlarm = 5 * time.Second

// firesAt tells when an alarm is due. One that is late by much says that nobody rings.
func firesAt(now, at schemas.Timestamp) string {
	if late := now.Sub(at); late > lateAlarm {
		return fmt.Sprintf("%s, which is %s ago: no alarm has rung, see: drover audit", at, round(late))
	}
	return at.String()
}

// nearsLimit tells that the history of an open run will soon be too long.
func nearsLimit(s *execution.State, c *execution.Config) string {
	left := c.EventsLeft(s.LastID)
	if left == 0 || s.Closed() {
		return ""
	}
	return fmt.Sprintf("; its history has %d events: from %d on nothing may lengthen it, and after %d more it is terminated: its decider must continue as new",
		s.LastID, c.MaxEvents, left)
}

// keptOpen tells that an open run is kept from continuing as new.
func keptOpen(s *execution.State) string {
	deferredRun := s.Continuing.Held
	if deferredRun == nil || s.Closed() {
		return ""
	}
	return fmt.Sprintf("; it is held%s and is not asked to continue as new: drover release %s", reason(deferredRun.Reason), s.WorkflowID)
}

func reason(r string) string {
	if r == "" {
		return ""
	}
	return " (" + r + ")"
}

func more(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("1 more %s is open", one)
	}
	return fmt.Sprintf("%d more %s are open", n, many)
}

func ago(now, then schemas.Timestamp) string {
	return fmt.Sprintf("%s (%s)", then.Time().Format(time.RFC3339), round(now.Sub(then)))
}

func round(d time.Duration) time.Duration { return max(d, 0).Round(time.Millisecond) }

// decision says in a word where the run stands with its decider.
func (p *partition) decision(r *run) string {
	d := &r.state.Decision
	switch {
	case r.noPoller:
		return schemas.DecisionForlorn
	case r.backingUp:
		return schemas.DecisionBackingOff
	case r.ask != nil || d.Started != 0:
		return schemas.DecisionStarted
	case d.Scheduled != 0:
		return schemas.DecisionScheduled
	}
	return ""
}

// describeState tells what a state shows.
func describeState(s *execution.State) *schemas.DescribeResponse {
	a := &schemas.DescribeResponse{
		V: schemas.Version, Execution: runs.InfoOf(s), LatestContext: s.Context, Input: s.Start.Input, Started: *s.Start,
		CancelRequested: s.CancelRequested, DeciderAttempt: s.Decision.Failures + 1, Held: s.Continuing.Held,
	}
	if d := s.Start.ExecutionStartToCloseTimeout; d.Limited() {
		a.Timeout = s.StartBase.Add(d)
	}
	if s.Paused != nil {
		a.PausedCause, a.PausedDetails = s.Paused.Reason, s.Paused.Details
	}
	for _, act := range s.OpenActivities() {
		o := schemas.OpenActivity{
			ActivityID: act.Scheduled.ActivityID, Type: act.Scheduled.ActivityType, List: act.Scheduled.List,
			ScheduledEventID: act.ScheduledID, ScheduledAt: act.ScheduledBase, StartedAt: act.StartedBase, Worker: act.Worker,
			Attempt: act.Attempt, CancelRequested: act.CancelRequested != 0,
		}
		if act.Started != 0 && act.Scheduled.StartToCloseTimeout.Limited() {
			o.Deadline = act.StartedBase.Add(act.Scheduled.StartToCloseTimeout)
		}
		a.Activities = append(a.Activities, o)
	}
	for _, c := range s.OpenChildren() {
		child := openChild(c)
		child.Policy = s.ChildrenTreated()
		a.Children = append(a.Children, child)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Timers)) {
		a.Timers = append(a.Timers, schemas.OpenTimer{TimerID: id, Due: s.Timers[id].Due()})
	}
	a.Locks, a.ReplayPoints = openLocksOf(s), s.ReplayPoints
	return a
}

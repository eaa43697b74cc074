package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// wait is one thing that an open run waits for. at is when it comes by itself; 0 if that is not
// known.
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
	waitActivity: {
		"activity",
		"activities",
	}, waitTimer: {"timer", "timers"}, waitChild: {"child", "children"},
	waitRequest: {"request", "requests"}, waitLock: {"lock", "locks"},
	waitState: {"request for a state key", "requests for state keys"},
}

// openBecause reads off the state what an open run waits for. If several things are open the
// sentence begins with what can happen at any moment, and names the soonest of those that have a
// time.
func openBecause(
	s *execution.State, now schemas.Timestamp, lock func(key string) *schemas.LockRecord,
) string {
	waits, timed := openActivities(s, now)
	waits = append(waits, openLocks(s, now, lock)...)
	timed = append(timed, openTimers(s, now)...)
	slices.SortStableFunc(timed, func(a, b wait) int { return cmp.Compare(a.at, b.at) })
	waits = append(waits, openChildren(s, now)...)
	for _, x := range s.OpenExternals() {
		kind, target, _ := s.RequestOf(x)
		text := fmt.Sprintf("its %s to workflow %q is not answered yet", kind, target)
		waits = append(waits, wait{kind: waitRequest, text: text})
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

// noWorker begins the sentence about a task that waits.
const noWorker = "no worker has taken activity "

// openActivities puts the activities that run before those that wait for a worker; timed are those
// whose next attempt is not due yet.
func openActivities(s *execution.State, now schemas.Timestamp) (waits, timed []wait) {
	var waiting []wait
	for _, a := range s.OpenActivities() {
		o := a.Scheduled
		switch {
		case a.Started != 0:
			waits = append(waits, wait{kind: waitActivity, text: running(a, now)})
		case a.NotBefore > now:
			text := fmt.Sprintf(
				"activity %q of type %q begins its attempt %d at %s",
				o.ActivityID,
				o.ActivityType,
				a.Attempt,
				a.NotBefore,
			)
			timed = append(timed, wait{kind: waitActivity, at: a.NotBefore, text: text})
		default:
			text := fmt.Sprintf(noWorker+"%q of type %q from list %q since %s", o.ActivityID,
				o.ActivityType, o.List, ago(now, max(a.ScheduledBase, a.NotBefore)))
			waiting = append(waiting, wait{kind: waitActivity, text: text})
		}
	}
	return append(waits, waiting...), timed
}

// running tells of an activity at work: where, since when, when it was last heard of and when it
// times out.
func running(a *execution.Activity, now schemas.Timestamp) string {
	text := fmt.Sprintf(
		"activity %q of type %q runs on %s since %s, attempt %d",
		a.Scheduled.ActivityID,
		a.Scheduled.ActivityType,
		cmp.Or(a.Worker, "a worker"),
		ago(now, a.StartedBase),
		a.Attempt,
	)
	if a.CancelRequested != 0 {
		text += ", asked to cancel"
	}
	if a.Scheduled.HeartbeatTimeout.Limited() {
		text += fmt.Sprintf(
			", last heard of %s ago",
			round(now.Sub(max(a.StartedBase, a.LastBeat))),
		)
	}
	if at := deadlineOf(a); at != 0 {
		text += fmt.Sprintf(", times out at %s", firesAt(now, at))
	}
	return text
}

func openTimers(s *execution.State, now schemas.Timestamp) (timed []wait) {
	for _, id := range slices.Sorted(maps.Keys(s.Timers)) {
		at := s.Timers[id].Due()
		timed = append(
			timed,
			wait{
				kind: waitTimer,
				at:   at,
				text: fmt.Sprintf("timer %q expires at %s", id, firesAt(now, at)),
			},
		)
	}
	return timed
}

func openChildren(s *execution.State, now schemas.Timestamp) (waits []wait) {
	for _, c := range s.OpenChildren() {
		does := "is to start"
		if c.Started != 0 {
			does = "runs"
		}
		text := fmt.Sprintf(
			"child workflow %q of type %q %s since %s",
			c.Scheduled.WorkflowID,
			c.Scheduled.WorkflowType,
			does,
			ago(now, c.At),
		)
		waits = append(waits, wait{kind: waitChild, text: text})
	}
	return waits
}

// openStates tells of the requests for state keys that are not answered. Those that try to take a
// lock are told as locks.
func openStates(s *execution.State, now schemas.Timestamp) (waits []wait) {
	for _, q := range s.OpenRequests() {
		if _, takes := q.Takes(); !takes {
			text := fmt.Sprintf(
				"%s of state key %q is to be carried out since %s",
				q.Request.Decision,
				q.Request.Key,
				ago(now, q.At),
			)
			waits = append(waits, wait{kind: waitState, text: text})
		}
	}
	return waits
}

// tellWaits names the first of what may come at any moment and the soonest of what has a time, and
// counts the rest.
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

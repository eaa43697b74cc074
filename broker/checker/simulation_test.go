package checker_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// service is a small model of what the broker does with one run, written from the design alone: a random run of it is a
// legal history. One step is one record, and all its events have one time.
type service struct {
	*rapid.T
	lines []string
	n     int // names given out

	pending, running, paused, closed, woken bool
	activities                              map[string]*task
	timers, children, others, keys          map[string]bool
	locks                                   map[string]bool // that are asked for, and whether the run has them
}

type task struct{ running, interrupted, canceled, idempotent bool }

func (s *service) write(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *service) wake() {
	s.woken = true
	if !s.pending && !s.paused {
		s.write("DeciderScheduled")
		s.pending = true
	}
}

func (s *service) name(prefix string) string {
	s.n++
	return fmt.Sprint(prefix, s.n)
}

func (s *service) pass(d string) { s.write("+%s", d) }

// one draws a key of a map, if it has any.
func one[V any](s *service, m map[string]V) (string, bool) {
	if len(m) == 0 {
		return "", false
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m))).Draw(s.T, "of"), true
}

// history draws a legal history; records are cut by "---".
func history(t *rapid.T) string {
	s := &service{
		T: t, activities: make(map[string]*task), timers: make(map[string]bool), children: make(map[string]bool),
		others: make(map[string]bool), locks: make(map[string]bool), keys: make(map[string]bool),
	}
	s.write("WorkflowStarted taskScheduleToStartTimeout=7 executionStartToCloseTimeout=360000")
	s.wake()
	steps := []func(*service){
		(*service).decide, (*service).decide, (*service).decide, (*service).work, (*service).work, (*service).tick, (*service).outside, (*service).answers,
	}
	for range rapid.IntRange(0, 40).Draw(t, "steps") {
		if s.closed {
			break
		}
		s.lines = append(s.lines, "---")
		s.pass(rapid.SampledFrom([]string{"0s", "1ms", "1s"}).Draw(t, "after"))
		rapid.SampledFrom(steps).Draw(t, "step")(s)
	}
	return strings.Join(s.lines, "\n")
}

func (s *service) outside() {
	switch rapid.IntRange(0, 6).Draw(s.T, "outside") {
	case 0, 1, 2:
		s.write("Signal s requestId=%s", s.name("q"))
		s.wake()
	case 3:
		s.write("WorkflowCancelRequested requestId=%s", s.name("q"))
		s.wake()
	case 4:
		if !s.paused {
			s.write("WorkflowPaused requestId=%s", s.name("q"))
			s.paused = true
		}
	default:
		if s.paused {
			s.write("WorkflowResumed requestId=%s", s.name("q"))
			s.paused = false
			s.wake()
		}
	}
}

// decide lets a decider take the task, answer or fail.
func (s *service) decide() {
	if !s.running {
		if s.pending && !s.paused {
			s.write("DeciderStarted")
			s.running, s.pending, s.woken = true, false, false
		}
		return
	}
	s.running = false
	switch rapid.IntRange(0, 5).Draw(s.T, "decider") {
	case 0:
		s.write("DeciderFailed")
		if !s.paused && rapid.Bool().Draw(s.T, "park") {
			s.write("WorkflowPaused")
			s.paused, s.woken = true, true
			return
		}
		s.wake()
	case 1:
		s.pass("10s")
		s.write("DeciderTimedOut")
		s.wake()
	default:
		again := rapid.IntRange(0, 3).Draw(s.T, "again") == 0
		s.write("DeciderCompleted again=%v", again)
		refused := false
		for range rapid.IntRange(0, 5).Draw(s.T, "decisions") {
			refused = s.decision() || refused
		}
		switch rapid.IntRange(0, 30).Draw(s.T, "close") {
		case 0, 1, 2, 3:
			if s.woken || refused {
				s.write("WorkflowCloseFailed cause=UNHANDLED_DECISION")
				refused = true
			} else {
				s.end(rapid.SampledFrom([]string{"WorkflowSuccess", "WorkflowFailed", "WorkflowCanceled", "WorkflowContinuedAsNew newExecutionRun=r2"}).Draw(s.T, "how"))
			}
		}
		if refused {
			s.wake()
		}
		if again && !s.closed && !s.paused && !s.pending {
			s.write("DeciderScheduled")
			s.pending = true
		}
	}
}

// end closes the run, which lets go of its locks before, or takes them along.
func (s *service) end(how string) {
	for _, id := range slices.Sorted(maps.Keys(s.locks)) {
		if !s.locks[id] || !strings.HasPrefix(how, "WorkflowContinued") {
			s.write("LockReleased %s deciderCompletedEventId=0", id)
		}
	}
	s.write("%s", how)
	s.closed = true
}

// decision writes one decision and tells whether it woke the decider.
func (s *service) decision() bool {
	kind := rapid.IntRange(0, 9).Draw(s.T, "decision")
	switch kind {
	case 0, 1, 2:
		id := s.name("A")
		idempotent := rapid.Bool().Draw(s.T, "idempotent")
		s.write("ActivityScheduled %s heartbeatTimeout=3 scheduleToStartTimeout=4 scheduleToCloseTimeout=5000 notIdempotent=%v", id, !idempotent)
		s.activities[id] = &task{idempotent: idempotent}
	case 3:
		id, ok := one(s, s.activities)
		if !ok {
			s.write("ActivityCancelFailed none cause=ACTIVITY_ID_UNKNOWN")
			return true
		}
		s.write("ActivityCancelRequested %s", id)
		s.activities[id].canceled = true
		if !s.activities[id].running {
			s.write("ActivityCanceled %s", id)
			delete(s.activities, id)
			return true
		}
	case 4:
		id, ok := one(s, s.activities)
		if ok {
			s.write("ActivityScheduleFailed %s cause=ACTIVITY_ID_ALREADY_IN_USE", id)
		}
		return ok
	case 5:
		id := rapid.SampledFrom([]string{"T", "U"}).Draw(s.T, "timer")
		if s.timers[id] {
			s.write("TimerScheduleFailed %s cause=TIMER_ID_ALREADY_IN_USE", id)
			return true
		}
		s.write("TimerScheduled %s startToFireTimeout=9", id)
		s.timers[id] = true
	case 6:
		id, ok := one(s, s.timers)
		if !ok {
			s.write("TimerCancelFailed none cause=TIMER_ID_UNKNOWN")
			return true
		}
		s.write("TimerCanceled %s", id)
		delete(s.timers, id)
	case 7:
		s.write("%s", rapid.SampledFrom([]string{"Marker m", "ReplayPointSet p", "ReplayPointsReset"}).Draw(s.T, "mark"))
	case 8:
		id := s.name("c")
		s.write("ChildScheduled %s", id)
		s.children[id] = false
	default:
		s.ask()
	}
	return false
}

func (s *service) ask() {
	id := s.name("x")
	switch rapid.IntRange(0, 2).Draw(s.T, "ask") {
	case 0:
		s.write("SignalExternalScheduled %s", id)
		s.others[id] = true
	case 1:
		s.write("LockRequested %s", id)
		s.locks[id] = false
	default:
		s.write("StateRequested %s decision=GetState", id)
		s.keys[id] = true
	}
}

// answers lets something happen that was asked of others.
func (s *service) answers() {
	if id, ok := one(s, s.children); ok && !s.children[id] {
		s.write("ChildStarted %s", id)
		s.children[id] = true
	} else if ok {
		s.write("%s %s", rapid.SampledFrom([]string{"ChildSuccess", "ChildFailed", "ChildTimedOut"}).Draw(s.T, "end"), id)
		delete(s.children, id)
		s.wake()
	}
	if id, ok := one(s, s.others); ok {
		s.write("ExternalSignaled %s", id)
		delete(s.others, id)
	}
	if id, ok := one(s, s.locks); ok && !s.locks[id] {
		s.write("LockAcquired %s fence=%d", id, s.n)
		s.locks[id] = true
		s.wake()
	}
	if id, ok := one(s, s.keys); ok {
		s.write("StateRead %s", id)
		delete(s.keys, id)
		s.wake()
	}
}

// work lets a worker take, finish, fail or lose an activity.
func (s *service) work() {
	id, ok := one(s, s.activities)
	if !ok {
		return
	}
	a := s.activities[id]
	end := func(format string, args ...any) {
		s.write(format, args...)
		delete(s.activities, id)
		s.wake()
	}
	if !a.running {
		s.write("ActivityStarted %s", id)
		a.running = true
		if rapid.Bool().Draw(s.T, "slow") {
			return
		}
	}
	switch rapid.IntRange(0, 5).Draw(s.T, "work") {
	case 0, 1:
		end("ActivitySuccess %s", id)
	case 2:
		end("ActivityFailed %s reason=boom", id)
	case 3:
		if !a.canceled {
			s.write("ActivityRetryScheduled %s", id)
			a.running, a.interrupted = false, true
		}
	case 4:
		if a.canceled {
			end("ActivityCanceled %s", id)
		}
	default:
		if a.idempotent {
			s.write("ActivityInterrupted %s\nActivityStarted %s", id, id)
			a.interrupted = true
		}
	}
}

// tick lets something run out of time.
func (s *service) tick() {
	switch rapid.IntRange(0, 3).Draw(s.T, "tick") {
	case 0:
		if id, ok := one(s, s.timers); ok {
			s.pass("9s")
			s.write("TimerExpired %s", id)
			delete(s.timers, id)
			s.wake()
		}
	case 1:
		if s.pending && !s.running && !s.paused {
			s.pass("7s")
			s.write("DeciderTimedOut")
			s.pending = false
			s.wake()
		}
	case 2:
		id, ok := one(s, s.activities)
		switch {
		case !ok:
			return
		case s.activities[id].running:
			s.pass("10m")
			s.write("ActivityTimedOut %s timeoutType=%s", id, rapid.SampledFrom([]string{"HEARTBEAT", "START_TO_CLOSE"}).Draw(s.T, "limit"))
		case !s.activities[id].interrupted:
			s.pass("4s")
			s.write("ActivityScheduledTimeout %s", id)
		default:
			s.pass("5000s")
			s.write("ActivityTimedOut %s timeoutType=SCHEDULE_TO_CLOSE", id)
		}
		delete(s.activities, id)
		s.wake()
	default:
		if rapid.IntRange(0, 20).Draw(s.T, "too long") == 0 {
			s.pass("100h")
			s.end("WorkflowTimedOut")
		}
	}
}

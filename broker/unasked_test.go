package broker_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

var (
	unaskedSeeds = flag.Uint64("unasked-seeds", 1, "how many storms of owners that come and go, ten virtual minutes each, runs go through that nobody asks for")
	unaskedFrom  = flag.Uint64("unasked-from", 1, "the first seed of these storms")
)

// otherwise decides that a run completes if something has gone wrong that is not what it waits for.
func otherwise(pairs ...string) func(*decisionTask) string {
	for _, bad := range []string{
		"ActivityFailed", "ActivityTimedOut", "ActivityScheduledTimeout", "ActivityScheduleFailed", "ChildFailed", "ChildTimedOut", "ChildTerminated",
		"ChildCanceled", "ChildStartFailed", "SignalExternalFailed", "LockRefused", "LockBroken", "TimerScheduleFailed",
	} {
		pairs = append(pairs, bad, complete)
	}
	return when(pairs...)
}

func sleepFor(timer string, seconds int) string {
	return fmt.Sprintf(`[{"type":"ScheduleTimer","attributes":{"timerId":%q,"startToFireTimeout":%d}}]`, timer, seconds)
}

const again = `,"startToCloseTimeout":40,"retry":{"initialInterval":5,"maximumAttempts":50}`

// unaskedTypes are workflows that end by themselves, each for something else that an owner may lose. What they decide follows from the window alone.
var unaskedTypes = map[string]func(*decisionTask) string{
	"empty":           func(*decisionTask) string { return complete },
	"has-no-time":     func(*decisionTask) string { return "[]" }, // it is started with a limit
	"sleeps":          otherwise("TimerExpired", complete, "WorkflowStarted", sleepFor("t", 45)),
	"works":           otherwise("ActivitySuccess", complete, "WorkflowStarted", "["+scheduleActivity("a", again)+"]"),
	"works-once":      otherwise("ActivitySuccess", complete, "WorkflowStarted", "["+scheduleActivity("a", `,"startToCloseTimeout":60,"notIdempotent":true`)+"]"),
	"works-in-time":   otherwise("ActivitySuccess", complete, "WorkflowStarted", "["+scheduleActivity("a", `,"scheduleToCloseTimeout":20`)+"]"),
	"works-and-rests": otherwise("TimerExpired", complete, "ActivitySuccess", sleepFor("t", 5), "WorkflowStarted", "["+scheduleActivity("a", again)+"]"),
	"waits":           otherwise("Signal", complete),
	"locks":           otherwise("TimerExpired", complete, "LockAcquired", sleepFor("t", 3), "WorkflowStarted", "["+acquire("L", "")+"]"),
	"is-parent-of-sleeps": func(d *decisionTask) string {
		return otherwise("ChildSuccess", complete, "WorkflowStarted", "["+kidOf(d, "sleeps")+"]")(d)
	},
	"is-parent-of-works": func(d *decisionTask) string {
		return otherwise("ChildSuccess", complete, "WorkflowStarted", "["+kidOf(d, "works")+"]")(d)
	},
	"tells": func(d *decisionTask) string {
		return otherwise("ChildSuccess", complete,
			"SignalExternalFailed", sleepFor("t", 5), // the child has not begun yet
			"TimerExpired", `[{"type":"SignalExternal","attributes":{"workflowId":"`+d.WorkflowID+`-kid","signalName":"go"}}]`,
			"WorkflowStarted", "["+kidOf(d, "waits")+","+sleepFor("t", 10)[1:])(d)
	},
	"renews": func(d *decisionTask) string {
		for _, e := range d.Events {
			switch {
			case e.Type == "WorkflowStarted" && e.Attributes["input"] != nil:
				return sleepFor("last", 8)
			case e.Type == "WorkflowStarted":
				return sleepFor("t", 8)
			case e.Type == "TimerExpired" && e.Attributes["timerId"] == "last":
				return complete
			case e.Type == "TimerExpired":
				return `[{"type":"ContinueAsNew","attributes":{"input":1}}]`
			}
		}
		return "[]"
	},
}

func kidOf(d *decisionTask, typ string) string {
	return `{"type":"StartChild","attributes":{"workflowId":"` + d.WorkflowID + `-kid","workflowType":"` + typ + `"}}`
}

// begins has a run begin by a message in the inbox, of which nobody awaits the answer.
func (s *storm) begins(i int) (id string) {
	typ := pick(s.r, slices.Sorted(maps.Keys(unaskedTypes))...)
	id = fmt.Sprintf("%s-%d", typ, i)
	limit := ""
	if typ == "has-no-time" {
		limit = `,"executionStartToCloseTimeout":30`
	}
	s.publish(ns.In(subject.Partition(id, s.partitions), id, "start"), fmt.Sprintf(`{"workflowId":%q,"type":%q,"run":"r%d","requestId":"q%d"%s}`, id, typ, i, i, limit))
	return id
}

// Whatever becomes of the owners of runs and of what they publish: when it is over, every run closes, though nobody asks for one. One seed is run by
// default; -unasked-seeds=N runs more. The same seed does not bring the same storm to the letter: what a fate meets depends on goroutines.
func TestRunsCloseUnasked(t *testing.T) { // P-1, P-2, P-8, P-10, P-13
	for seed := *unaskedFrom; seed < *unaskedFrom+*unaskedSeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			virtually(t, 2, func(t *testing.T, f *fleet) {
				(&storm{fleet: f, r: rand.New(rand.NewPCG(seed, 1)), fates: rand.New(rand.NewPCG(seed, 2))}).pass(10 * time.Minute)
			})
		})
	}
}

func (s *storm) pass(lasts time.Duration) {
	for typ := range unaskedTypes {
		s.decides(typ)
	}
	s.hears()
	stop := make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() { s.works(stop) })
	working.Go(func() { s.works(stop) })
	s.begin()
	var ids []string
	calls := map[string]time.Time{} // signals that are to come
	end := time.Now().Add(lasts)
	for time.Now().Before(end) {
		switch {
		case s.r.IntN(3) > 0:
			id := s.begins(len(ids))
			ids = append(ids, id)
			if strings.HasPrefix(id, "waits-") {
				calls[id] = time.Now().Add(time.Duration(s.r.IntN(60)) * time.Second)
			}
		default:
			s.blow()
		}
		time.Sleep(pick(s.r, 0, 20*time.Millisecond, 500*time.Millisecond, 3*time.Second, 9*time.Second))
		for _, id := range ids {
			if at, ok := calls[id]; ok && !time.Now().Before(at) {
				delete(calls, id)
				s.publish(ns.Signal(id, "go"), "")
			}
		}
	}
	for _, id := range ids {
		if _, ok := calls[id]; ok {
			s.publish(ns.Signal(id, "go"), "")
		}
	}
	s.over.Store(true)
	s.living()
	s.begin()
	s.closeAll(ids)
	close(stop)
	working.Wait()
}

// closeAll waits until each of the workflows, and all that they have begun, has closed, and tells of those that have not: first what is stored of them, then
// what becomes of them when somebody asks.
func (s *storm) closeAll(ids []string) {
	s.t.Helper()
	began := time.Now()
	var open []string
	s.until(2*time.Hour, func() bool { open = s.open(ids); return len(open) == 0 })
	s.t.Logf("%d workflows, %d nodes; the last closed %v after the storm", len(ids), s.born, time.Since(began).Round(time.Second))
	for _, id := range open {
		s.t.Errorf("%s has not closed %v after the storm:", id, time.Since(began).Round(time.Second))
		for _, e := range append(s.recorded(strings.TrimSuffix(id, "-kid")), s.recorded(id)...) {
			s.t.Logf("%d %s %v %+v", e.ID, e.Type(), e.Time, e.Attributes)
		}
	}
	for _, id := range open {
		why := s.api("why", `{"workflowId":"`+id+`"}`)["because"]
		closed := s.until(10*time.Minute, func() bool { return s.status(id).Closed() })
		s.t.Logf("%s: asked why: %v; closed then: %t", id, why, closed)
	}
	if len(open) > 0 {
		for _, l := range s.letters() {
			s.t.Logf("dead letter %s about %s: %s", l.Reason, l.Subject, l.Details)
		}
	}
}

// open are those of the workflows that have no history that is closed, and those that they have begun and that are open.
func (s *storm) open(ids []string) (open []string) {
	s.t.Helper()
	for _, id := range ids {
		for _, id := range []string{id, id + "-kid"} {
			status := s.status(id)
			kid := strings.HasSuffix(id, "-kid")
			if !status.Closed() && !(kid && status == "") || status == schemas.StatusContinuedAsNew {
				open = append(open, id)
			}
		}
	}
	return open
}

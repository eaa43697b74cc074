package e2e

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/e2e/stranger"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

// closed makes a run of every closing status, and dead letters.
func (s *studio) closed() {
	s.t.Helper()
	ends := func(id string, p script, o startOptions, status schemas.Status, said string, help func(*drover.Run)) {
		s.t.Helper()
		if o.Timeout == 0 {
			o.Timeout = drover.Unlimited
		}
		run := s.start(playType, id, p, o)
		if help != nil {
			s.has(run, schemas.EventDeciderCompleted)
			help(run)
		}
		if o := s.ends(run); o.Status != status {
			s.t.Fatalf("%s: got %s, want %s", id, o.Status, status)
		}
		s.note(storedRun{ID: id, Run: run.RunID, Waits: "nothing", Status: status, Said: said})
	}
	hold := acts(act{Do: doHold})
	ends("was-completed", acts(echo), startOptions{Tags: []string{"old"}, Attributes: map[string]string{"k": "v"}}, schemas.StatusCompleted, "echo ok;", nil)
	ends("was-failed", acts(act{Do: doFail, Name: "no luck"}), startOptions{}, schemas.StatusFailed, "no luck", nil)
	ends("was-timed-out", hold, startOptions{Timeout: time.Second}, schemas.StatusTimedOut, "", nil)
	ends("was-canceled", hold, startOptions{}, schemas.StatusCanceled, "", func(r *drover.Run) {
		if err := r.Cancel(s.t.Context(), "please"); err != nil {
			s.t.Fatal(err)
		}
	})
	ends("was-terminated", hold, startOptions{}, schemas.StatusTerminated, "enough", func(r *drover.Run) {
		if err := r.Terminate(s.t.Context(), &drover.TerminateOptions{Reason: "enough"}); err != nil {
			s.t.Fatal(err)
		}
	})
	shout(s.world, s.js, namespace.Signal("nobody", "go"), "1")
	shout(s.world, s.js, namespace.Signal("was-completed", "go"), "2")
	shout(s.world, s.js, namespace.In(s.home, at(s.home, "garbage"), "start"), "not a start")
	s.book.Dead = map[string]int{"unknown-workflow": 1, "closed-workflow": 1, "undecodable": 1}
	poll.Until(s.t, patience, "the dead letters", func() bool {
		dead := map[string]int{}
		for _, letter := range s.dead("") {
			dead[letter.Reason]++
		}
		return maps.Equal(dead, s.book.Dead)
	})
}

// waiting makes runs that wait for somebody.
func (s *studio) waiting() {
	s.t.Helper()
	ctx, cancel := s.bounded()
	defer cancel()
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	parked := s.put("broken", acts(echo), storedRun{ID: "parked", Waits: "an operator, after its decider had failed too often", Resume: true, Said: "echo ok;"})
	s.has(s.put(playType, acts(hearGo), storedRun{ID: "signal", Waits: "a signal", Signal: "go", Said: "heard go;"}), schemas.EventDeciderCompleted)
	s.put("absent", acts(echo), storedRun{ID: "no-decider", Waits: "a decider", Said: "echo ok;"})
	must(s.put("absent", acts(echo), storedRun{ID: "cancel-unseen", Waits: "a decider, which is to hear of a cancel request", Status: schemas.StatusCanceled}).Cancel(ctx, "please"))
	stubborn := hearGo
	run := s.put(playType, script{Acts: []act{stubborn}, Stubborn: true}, storedRun{ID: "cancel-seen", Waits: "a signal, although it was asked to end", Signal: "go", Said: "heard go;"})
	must(run.Cancel(ctx, "please"))
	run = s.put(playType, acts(hearGo, echo), storedRun{ID: "paused", Waits: "an operator; the signal that it waits for has come", Resume: true, Said: "heard go;echo ok;"})
	s.has(run, schemas.EventDeciderCompleted)
	must(run.Pause(ctx, "to look at it"))
	must(run.Signal(ctx, "go", nil))
	run = s.put(playType, acts(echo, act{Do: doRenew}, echo, act{Do: doRenew}, hearGo), storedRun{
		ID: "chain", Waits: "a signal, in the third run of a chain", Signal: "go", Said: "echo ok;renewed;echo ok;renewed;heard go;",
	})
	poll.Until(s.t, patience, "the chain has three runs", func() bool { return s.count("chain", schemas.EventDeciderCompleted) == 5 })
	s.note(storedRun{ID: "chain", Run: run.RunID, Waits: "nothing, it was continued as new", Status: schemas.StatusContinuedAsNew})
	run = s.put(playType, acts(act{Do: doWork, Name: "echo", Times: 130}, hearGo, echo), storedRun{
		ID: "long", Waits: "a signal, after more than 700 events", Signal: "go", Said: "echo ok;heard go;echo ok;",
	})
	s.until(run, 6*130+4, schemas.EventDeciderCompleted)
	large := acts(act{Do: doWork, Name: "large"}, hearGo)
	large.Pad = strings.Repeat("padding ", 50_000)
	run = s.put(playType, large, storedRun{ID: "large", Waits: "a signal; its input and a result are in the object store", Signal: "go", Said: "large large;heard go;"})
	s.has(run, schemas.EventActivitySuccess)
	s.put(playType, acts(act{Do: doChild, Workflow: "child-open", Play: new(acts(hearGo))}, act{Do: doJoin}), storedRun{
		ID: "parent-open", Waits: "its child", Said: "child completed heard go;;",
	})
	s.exists(s.client.Run("child-open", ""))
	s.note(storedRun{ID: "child-open", Waits: "a signal", Signal: "go", Said: "heard go;"})
	s.put(playType, acts(act{Do: doChild, Workflow: "child-absent", Type: "absent", Play: new(acts(echo))}, act{Do: doJoin}), storedRun{
		ID: "parent-absent", Waits: "its child, which no decider serves", Said: "child completed echo ok;;",
	})
	s.exists(s.client.Run("child-absent", ""))
	s.note(storedRun{ID: "child-absent", Waits: "a decider", Said: "echo ok;"})
	s.put(playType, acts(act{Do: doSleep, Seconds: aCentury, Name: "go"}), storedRun{ID: "timer-far", Waits: "a timer of a century, or a signal", Signal: "go", Said: "woken;"})
	s.has(parked, schemas.EventWorkflowPaused)
}

// registered makes types: one in use, that is deprecated then.
func (s *studio) registered() {
	s.t.Helper()
	ctx, cancel := s.bounded()
	defer cancel()
	for _, typ := range []struct {
		kind          schemas.TypeKind
		name, version string
		status        schemas.TypeStatus
	}{
		{schemas.WorkflowKind, "typed", "1", schemas.TypeDeprecated},
		{schemas.WorkflowKind, "typed", "2", schemas.TypeRegistered},
		{schemas.ActivityKind, "tool", "1", schemas.TypeRegistered},
		{schemas.ActivityKind, "tool", "0", schemas.TypeDeprecated},
	} {
		if _, err := s.client.RegisterType(ctx, typ.kind, typ.name, &drover.TypeOptions{Version: typ.version, Description: "of a test"}); err != nil {
			s.t.Fatal(err)
		}
		if typ.kind == schemas.WorkflowKind {
			id := "typed-" + typ.version
			poll.Until(s.t, patience, "the type is known", func() bool {
				run, err := s.client.Start(ctx, typ.name, acts(hearGo), &drover.StartOptions{ID: id, RequestID: id, TypeVersion: typ.version, Timeout: drover.Unlimited})
				if err == nil {
					s.has(run, schemas.EventDeciderCompleted)
				}
				return err == nil
			})
			s.note(storedRun{ID: id, Waits: "a signal; its type is " + string(typ.status), Signal: "go", Said: "heard go;"})
		}
		if typ.status == schemas.TypeDeprecated {
			if _, err := s.client.DeprecateType(ctx, typ.kind, typ.name, typ.version); err != nil {
				s.t.Fatal(err)
			}
		}
		s.book.Registered[fmt.Sprintf("%s %s %s", typ.kind, typ.name, typ.version)] = typ.status
	}
}

// second makes a second namespace.
func (s *studio) second() {
	s.t.Helper()
	ctx, cancel := s.bounded()
	defer cancel()
	if _, err := s.client.CreateNamespace(ctx, "second", &drover.NamespaceOptions{Partitions: 1, Description: "a tenant"}); err != nil {
		s.t.Fatal(err)
	}
	other := s.tenant("second")
	deciders := other.client.Deciders(nil)
	deciders.Register(playType, decider.Func(decidePlay))
	stop := other.background(deciders.Run)
	defer stop()
	for _, r := range []struct {
		storedRun
		act act
	}{
		{storedRun{ID: "signal", Waits: "a signal", Signal: "go", Said: "heard go;"}, hearGo},
		{storedRun{ID: "not-started", Waits: "a worker", Said: "echo ok;"}, act{Do: doWork, Name: "echo", List: "later"}},
	} {
		run := other.start(playType, r.ID, acts(r.act), startOptions{Timeout: drover.Unlimited})
		other.has(run, schemas.EventDeciderCompleted)
		r.Namespace = "second"
		s.note(r.storedRun)
	}
}

// activities makes runs that wait for workers: none came, one died, one failed.
func (s *studio) activities() {
	s.t.Helper()
	later := act{Do: doWork, Name: "echo", List: "later"}
	once, hands := later, act{Do: doWork, Name: "echo", List: "hands"}
	once.Once = true
	s.has(s.put(playType, acts(later), storedRun{ID: "not-started", Waits: "a worker", Said: "echo ok;"}), schemas.EventActivityScheduled)
	s.has(s.put(playType, acts(once), storedRun{ID: "once-not-started", Waits: "a worker, of work that must not run twice", Said: "echo ok;"}), schemas.EventActivityScheduled)

	victim := s.hand("hands")
	run := s.put(playType, acts(hands), storedRun{ID: "worker-gone", Waits: "another worker: the first one is gone", Said: "echo ok;"})
	victim.takes("act-1.1")
	victim.reports("act-1.1", "started")
	s.has(run, schemas.EventActivityStarted)
	victim.Kill()

	victim = s.hand("hands")
	hands.Once = true
	run = s.put(playType, acts(hands), storedRun{ID: "once-worker-gone", Waits: "a worker that is gone, with work that must not run twice", Said: "echo interrupted;"})
	n := victim.takes("act-1.1").line.N
	victim.order(stranger.Line{N: n, Do: "begin"})
	if l := victim.answer(n); !strings.Contains(string(l.Permission), `"go":true`) {
		s.t.Fatalf("got %s, want go", l.Permission)
	}
	s.has(run, schemas.EventActivityStarted)
	victim.Kill()

	s.has(s.put(playType, acts(act{Do: doWork, Name: "flaky", Retry: laterSeconds}), storedRun{ID: "retry", Waits: "its second attempt", Said: "flaky 2;"}), schemas.EventActivityRetryScheduled)
	for _, p := range []int{s.home, s.away} {
		id := at(p, "timer-overdue")
		s.has(s.put(playType, acts(act{Do: doSleep, Seconds: laterSeconds}), storedRun{ID: id, Waits: "a timer that is overdue", Said: "slept;"}), schemas.EventTimerScheduled)
	}
}

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/e2e/stranger"
	"github.com/droverhq/drover/schemas"
)

const (
	storePartitions = 2
	// storeClaims is how long the brokers of a store under way keep their partitions, also the one that is stopped: all
	// that is done behind its back takes less.
	storeClaims = 15 * time.Second
	// laterSeconds is when the timers and retries come that are overdue in the store: after it was made.
	laterSeconds = 12
	aCentury     = 100 * 365 * 24 * 3600
)

// studio is a store under way: a server, and two brokers with a partition each. Broker away is stopped at the end, so that
// what is for its partition stays on its way.
type studio struct {
	*world
	book       book
	home, away int // partitions
	js         jetstream.JetStream
}

// produce makes a store and writes it into testdata.
func produce(t *testing.T, name string) {
	t.Helper()
	s := &studio{world: newWorld(t), book: book{
		Made: time.Now().UTC().Format(time.DateOnly), Namespaces: map[string]int{"default": storePartitions, "second": 1},
		Lists: []string{playList, "later", "hands"}, Types: []string{playType, "absent", "broken", "typed"},
		Registered: map[string]schemas.TypeStatus{}, Dead: map[string]int{},
	}}
	flags := []string{"--claim-ttl", storeClaims.String()}
	server := s.embedded("--profile", "dev", "--roles", "timers,ops", "--partitions", fmt.Sprint(storePartitions))
	brokers := map[string]*process{"one": s.beside("one", "broker", flags...), "two": s.beside("two", "broker", flags...)}
	var err error
	if s.js, err = jetstream.New(s.plain()); err != nil {
		t.Fatal(err)
	}
	for _, stop := range s.company() {
		defer stop()
	}
	s.shares()
	s.closed()
	s.waiting()
	s.registered()
	s.second()
	s.activities()
	families := s.prepare()

	brokers["two"].signal(syscall.SIGSTOP)
	families()
	eventually(t, "the server has synced what it has", func() bool { return s.quiet() })
	server.kill()
	for _, b := range brokers {
		b.kill()
	}
	s.keep(name)
}

// keep writes what was made.
func (s *studio) keep(name string) {
	s.t.Helper()
	text, err := json.MarshalIndent(s.book, "", "  ")
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.MkdirAll(storesDir, 0o750); err != nil {
		s.t.Fatal(err)
	}
	pack(s.t, filepath.Join(s.dir, "store"), filepath.Join(storesDir, name+".tar.gz"))
	if err := os.WriteFile(filepath.Join(storesDir, name+".json"), append(text, '\n'), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// company starts deciders and workers: none for type absent and list later, and type broken fails.
func (s *studio) company() (stops []func()) {
	deciders := s.client.Deciders(nil)
	for _, typ := range []string{playType, "typed"} {
		deciders.Register(typ, decider.Func(decidePlay))
	}
	deciders.Register("broken", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
		return nil, errors.New("this decider is broken")
	}))
	activities := s.client.Activities(&activity.Options{Lists: []string{playList}})
	props(activities)
	return []func(){s.background(deciders.Run), s.background(activities.Run)}
}

// shares waits until each broker has a partition.
func (s *studio) shares() {
	s.t.Helper()
	observer, err := claims.Open(s.client.Conn(), namespace.BucketClaims(), claims.Options{Node: "observer"})
	if err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "each broker owns a partition", func() bool {
		held, err := observer.List(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		of := map[string]int{}
		for _, h := range held {
			if p, ok := claims.ParsePartition(h.Key); ok && !h.Expired {
				of[h.Node] = p
			}
		}
		s.home, s.away = of["one"], of["two"]
		return len(of) == 2
	})
}

// at is an id on a partition.
func at(partition int, name string) string {
	for i := 0; ; i++ {
		if id := fmt.Sprintf("%s-%d", name, i); subject.Partition(id, storePartitions) == partition {
			return id
		}
	}
}

// note adds a run to the book.
func (s *studio) note(r storedRun) {
	if r.Namespace == "" {
		r.Namespace = "default"
	}
	if r.Status == "" {
		r.Status = schemas.StatusCompleted
	}
	s.book.Runs = append(s.book.Runs, r)
}

// put starts a run that never times out, and notes it.
func (s *studio) put(typ string, p script, r storedRun) *drover.Run {
	s.t.Helper()
	run := s.start(typ, r.ID, p, startOptions{Timeout: drover.Unlimited, DecisionTimeout: 10 * time.Second})
	s.note(r)
	return run
}

func acts(all ...act) script { return script{Acts: all} }

var (
	hearGo = act{Do: doHear, Name: "go"}
	echo   = act{Do: doWork, Name: "echo"}
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
	eventually(s.t, "the dead letters", func() bool {
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
	eventually(s.t, "the chain has three runs", func() bool { return s.count("chain", schemas.EventDeciderCompleted) == 5 })
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
			eventually(s.t, "the type is known", func() bool {
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
	victim.kill()

	victim = s.hand("hands")
	hands.Once = true
	run = s.put(playType, acts(hands), storedRun{ID: "once-worker-gone", Waits: "a worker that is gone, with work that must not run twice", Said: "echo interrupted;"})
	n := victim.takes("act-1.1").line.N
	victim.order(stranger.Line{N: n, Do: "begin"})
	if l := victim.answer(n); !strings.Contains(string(l.Permission), `"go":true`) {
		s.t.Fatalf("got %s, want go", l.Permission)
	}
	s.has(run, schemas.EventActivityStarted)
	victim.kill()

	s.has(s.put(playType, acts(act{Do: doWork, Name: "flaky", Retry: laterSeconds}), storedRun{ID: "retry", Waits: "its second attempt", Said: "flaky 2;"}), schemas.EventActivityRetryScheduled)
	for _, p := range []int{s.home, s.away} {
		id := at(p, "timer-overdue")
		s.has(s.put(playType, acts(act{Do: doSleep, Seconds: laterSeconds}), storedRun{ID: id, Waits: "a timer that is overdue", Said: "slept;"}), schemas.EventTimerScheduled)
	}
}

// prepare makes runs on the partition away, and returns what sends them something behind the back of their owner. Then the
// API is not used: its requests may go to the broker that is stopped.
func (s *studio) prepare() (send func()) {
	s.t.Helper()
	open := func(partition int, name string, p script, r storedRun) string {
		s.t.Helper()
		r.ID = at(partition, name)
		s.has(s.put(playType, p, r), schemas.EventDeciderCompleted)
		return r.ID
	}
	told := open(s.away, "told", acts(hearGo), storedRun{Waits: "a signal of another workflow, which it has not read", Said: "heard go;"})
	asked := open(s.away, "asked", acts(act{Do: doHold}), storedRun{Waits: "a cancel request of another workflow, which it has not read", Status: schemas.StatusCanceled})
	poked := open(s.away, "poked", acts(hearGo), storedRun{Waits: "a signal, which it has not read", Said: "heard go;"})
	worker := s.hand("hands")
	open(s.away, "reported", acts(act{Do: doWork, Name: "echo", List: "hands"}), storedRun{Waits: "the outcome of its activity, which it has not read", Said: "echo result of act-1.1;"})
	worker.takes("act-1.1")
	kid := at(s.home, "child-done")
	open(s.away, "bereft", acts(act{Do: doChild, Workflow: kid, Play: new(acts(hearGo))}, act{Do: doJoin}), storedRun{Waits: "the end of its child, which it has not read", Said: "child completed heard go;;"})
	s.has(s.client.Run(kid, ""), schemas.EventDeciderCompleted)

	return func() {
		s.t.Helper()
		tells := s.publish("tells", acts(act{Do: doTell, Workflow: told, Name: "go"}, hearGo), storedRun{Waits: "the answer to a signal to another workflow", Await: schemas.EventExternalSignaled, Signal: "go", Said: "heard go;"})
		asks := s.publish("asks", acts(act{Do: doStop, Workflow: asked}, hearGo), storedRun{Waits: "the answer to a cancel request to another workflow", Await: schemas.EventExternalCancelRequested, Signal: "go", Said: "heard go;"})
		unborn := at(s.away, "child-unborn")
		begets := s.publish("begets", acts(act{Do: doChild, Workflow: unborn, Play: new(acts(echo))}, act{Do: doJoin}), storedRun{Waits: "its child, whose start nobody has read", Said: "child completed echo ok;;"})
		s.note(storedRun{ID: unborn, Waits: "its start, which nobody has read", Said: "echo ok;"})
		late := at(s.away, "late-start")
		s.submit(s.away, late, acts(echo))
		s.note(storedRun{ID: late, Waits: "its start, which nobody has read", Said: "echo ok;"})
		shout(s.world, s.js, namespace.Signal(poked, "go"), "1")
		shout(s.world, s.js, namespace.Signal(kid, "go"), "1")
		worker.reports("act-1.1", "success")
		worker.acks("act-1.1")
		s.stored(tells, schemas.EventSignalExternalScheduled)
		s.stored(asks, schemas.EventCancelExternalScheduled)
		s.stored(begets, schemas.EventChildScheduled)
		s.stored(kid, schemas.EventWorkflowSuccess)
	}
}

// publish starts a run at home by way of its inbox.
func (s *studio) publish(name string, p script, r storedRun) string {
	s.t.Helper()
	r.ID = at(s.home, name)
	s.submit(s.home, r.ID, p)
	s.note(r)
	return r.ID
}

func (s *studio) submit(partition int, id string, p script) {
	s.t.Helper()
	input, err := schemas.JSONPayload(p)
	if err != nil {
		s.t.Fatal(err)
	}
	body, err := json.Marshal(&schemas.StartRequest{WorkflowID: id, Run: "of-" + id, Type: playType, Input: input, ExecutionStartToCloseTimeout: schemas.Unlimited})
	if err != nil {
		s.t.Fatal(err)
	}
	shout(s.world, s.js, namespace.In(partition, id, "start"), string(body))
}

// stored waits until the stream of a run has an event of a type.
func (s *studio) stored(id string, want schemas.EventType) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%s has %s", id, want), func() bool {
		found := false
		partition := subject.Partition(id, storePartitions)
		err := s.client.Conn().Scan(s.t.Context(), namespace.StreamHistory(partition), post.ReadOptions{FilterSubjects: []string{namespace.AllRuns(partition)}}, func(m post.Stored) error {
			var r schemas.Record
			if err := schemas.Unmarshal(m.Data, &r); err != nil || r.WorkflowID != id {
				return err
			}
			for _, e := range r.Events {
				found = found || e.Type() == want
			}
			return nil
		})
		if err != nil {
			s.t.Fatal(err)
		}
		return found
	})
}

// quiet tells that no stream grows any more: what was published between workflows has arrived.
func (s *studio) quiet() bool {
	s.t.Helper()
	sum := func() (n uint64) {
		for _, stream := range []string{namespace.StreamIn(s.away), namespace.StreamIn(s.home), namespace.StreamHistory(s.home)} {
			_, last, err := s.client.Conn().StreamState(s.t.Context(), stream)
			if err != nil {
				s.t.Fatal(err)
			}
			n += last
		}
		return n
	}
	before := sum()
	if err := pause(s.t.Context(), 1500*time.Millisecond); err != nil { // longer than the broker waits with an alarm
		s.t.Fatal(err)
	}
	return sum() == before
}

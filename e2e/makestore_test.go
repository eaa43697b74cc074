package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	storePartitions = 2
	// storeClaims is how long the brokers of a store under way keep their partitions, also the one that is stopped: all
	// that is done after its back takes less.
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
	server := s.embedded("--profile", "dev", "--roles", "timers,ops,flows", "--partitions", fmt.Sprint(storePartitions))
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
	s.coordinated()
	s.lasting()
	s.activities()
	s.scheduled()
	families := s.prepare()

	brokers["two"].Signal(syscall.SIGSTOP)
	families()
	poll.Until(t, patience, "the server has synced what it has", func() bool { return s.quiet() })
	server.Kill()
	for _, b := range brokers {
		b.Kill()
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
	observer, err := claims.Open(natsconn.Of(s.client), namespace.BucketClaims(), claims.Options{Node: "observer"})
	if err != nil {
		s.t.Fatal(err)
	}
	poll.Until(s.t, patience, "each broker owns a partition", func() bool {
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

// prepare makes runs on the partition away, and returns what sends them something after the back of their owner. Then the
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
	s.exists(s.client.Run(kid, "")) // its start is on its way
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
	poll.Until(s.t, patience, fmt.Sprintf("%s has %s", id, want), func() bool {
		found := false
		partition := subject.Partition(id, storePartitions)
		err := natsconn.Of(s.client).Scan(s.t.Context(), namespace.StreamHistory(partition), natsconn.ReadOptions{FilterSubjects: []string{namespace.AllRuns(partition)}}, func(m natsconn.Stored) error {
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
			_, last, err := natsconn.Of(s.client).StreamState(s.t.Context(), stream)
			if err != nil {
				s.t.Fatal(err)
			}
			n += last
		}
		return n
	}
	before := sum()
	if err := sleep.For(s.t.Context(), 1500*time.Millisecond); err != nil { // longer than the broker waits with an alarm
		s.t.Fatal(err)
	}
	return sum() == before
}

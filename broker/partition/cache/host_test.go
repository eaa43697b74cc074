package cache_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/cache"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// partition is one that takes what is read of its runs, and notes what it is told of them. Where it
// has a loop, everything of it is called and looked at there.
type partition struct {
	*cache.Cache
	t     *testing.T
	lines deadlines.Deadlines[*actor.Run]

	said   map[string][]string // by workflow id
	recall []string            // the runs whose recall has ended
	failed error
}

func newPartition(t *testing.T, o env.Owner) *partition {
	t.Helper()
	p := &partition{
		t: t, lines: deadlines.New[*actor.Run](), said: map[string][]string{},
	}
	p.Cache = cache.New(p, o, &p.lines)
	return p
}

// options are those of these tests: many more runs may be in memory than there are.
func options() env.Options {
	return env.Options{CachedRuns: 10_000, CheckpointEvery: 300 * time.Millisecond}
}

// onServer returns the runs of an owner on a server. Messages of the history can be removed.
func onServer(t *testing.T, o *envtest.Owner) *partition {
	t.Helper()
	js, name := o.Env.Conn.JetStream(), o.Env.NS.StreamHistory(0)
	history, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	config := history.CachedInfo().Config
	config.DenyDelete = false
	if err := js.DeleteStream(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	o.Env.Options.CachedRuns = options().CachedRuns
	o.Env.Options.CheckpointEvery = options().CheckpointEvery
	return newPartition(t, o.Owner)
}

func (p *partition) note(r *actor.Run, what string) {
	p.said[r.WorkflowID] = append(p.said[r.WorkflowID], what)
}

// wantSaid tells whether this was said of a run since it was asked last.
func (p *partition) wantSaid(when, wid string, want ...string) {
	p.t.Helper()
	if !slices.Equal(p.said[wid], want) {
		p.t.Errorf("%s, of %s: got %q, want %q", when, wid, p.said[wid], want)
	}
	delete(p.said, wid)
}

func (p *partition) Fail(format string, args ...any) { p.failed = fmt.Errorf(format, args...) }
func (p *partition) SingleReplica() bool             { return true }
func (p *partition) SetAside(r *actor.Run)           { p.note(r, "is set aside") }
func (p *partition) GoOn(r *actor.Run)               { p.note(r, "goes on") }
func (p *partition) EndRecall(r *actor.Run)          { p.recall = append(p.recall, r.WorkflowID) }

// WorkerNumber numbers the workers by the lengths of their names; worker is the way back.
func (p *partition) WorkerNumber(name string) uint64 { return uint64(len(name)) }

func worker(number uint64) string { return strings.Repeat("w", int(number)) }

func (p *partition) Ready(r *actor.Run, l *runs.Run) {
	r.Load.End()
	if l == nil {
		p.note(r, "has no run")
	} else {
		r.State, r.End = l.State, l.End
		p.note(r, stands(l.State))
	}
	if k := r.Passive; k != nil {
		r.Alarm.Due, r.Alarm.Seq, r.Decider.Sticky = k.Due, k.Alarm, worker(k.Worker)
		r.Passive = nil
	}
	then := r.Then
	r.Then = nil
	for _, w := range then {
		w.Run()
	}
}

func (p *partition) TurnAwayAll(r *actor.Run) {
	then := r.Then
	r.Then = nil
	for _, w := range then {
		switch {
		case w.Patient && !r.Load.IsAside():
			r.Then = append(r.Then, w)
		case w.Broken != nil:
			w.Broken()
		}
	}
}

// ask asks for a run and waits for it in every way.
func (p *partition) ask(wid string) {
	r := p.Get(wid)
	say := func(what string) func() { return func() { p.note(r, what) } }
	p.When(r, say("when"))
	p.WhenKnown(r, say("known"), say("broken"))
	p.WhenKept(r, say("kept"), say("dropped"))
}

// rest lets this time pass for the runs in memory, and forgets those that were idle.
func (p *partition) rest(d time.Duration) {
	for range p.InTicks(d) {
		p.lines.Usage.Tick()
	}
	p.PassivateIdle()
}

// story is a workflow id whose history the test writes.
type story struct {
	t      *testing.T
	o      *envtest.Owner
	wid    string
	begun  int // runs
	latest *execution.State
	hash   []byte // of the last record, which stands at seq
	seq    uint64
}

// begins returns the story of a workflow id that has a run.
func begins(t *testing.T, o *envtest.Owner, wid string) *story {
	t.Helper()
	s := &story{t: t, o: o, wid: wid}
	s.starts()
	return s
}

// starts writes the first record of another run.
func (s *story) starts() {
	s.t.Helper()
	s.begun++
	run := fmt.Sprintf("%s-%d", s.wid, s.begun)
	s.latest, s.hash, s.seq = execution.New(s.wid, run), nil, 0
	s.happens(execution.Start{Request: &schemas.StartRequest{
		WorkflowID: s.wid, Run: run, Type: "order",
	}})
}

// happens writes one record of the latest run.
func (s *story) happens(m execution.Message) {
	s.t.Helper()
	events, _ := s.latest.Step(s.o.Env.Config(), m, s.o.Env.Now())
	body, err := schemas.Marshal(&schemas.Record{
		WorkflowID: s.wid, Run: s.latest.Run, First: events[0].ID, Events: events, Previous: s.hash,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	h := natsconn.Header{}
	runs.Describe(h, s.latest, events)
	hash := sha256.Sum256(body)
	s.seq, s.hash = s.put(h, body), hash[:]
}

// signals writes a record with a signal.
func (s *story) signals() {
	s.t.Helper()
	s.happens(execution.Signal{Name: "s"})
}

// put stores a message after the last record of the latest run, and returns its sequence.
func (s *story) put(h natsconn.Header, body []byte) uint64 {
	s.t.Helper()
	natsconn.ExpectLastSubjectSeq(h, s.seq)
	subj := s.o.Env.NS.History(0, s.wid, s.latest.Run)
	seq, err := s.o.Env.Conn.PublishSync(s.t.Context(), subj, h, body)
	if err != nil {
		s.t.Fatal(err)
	}
	return seq
}

// isFollowedBy stores what is to be a record and is none. heal takes it away.
func (s *story) isFollowedBy(body string) (heal func()) {
	s.t.Helper()
	seq := s.put(natsconn.Header{schemas.StatusHeader: {"open"}}, []byte(body))
	return func() { s.t.Helper(); remove(s.t, s.o, seq) }
}

// remove removes a message of the history.
func remove(t *testing.T, o *envtest.Owner, seq uint64) {
	t.Helper()
	if err := o.Env.Conn.DeleteMsg(t.Context(), o.Env.NS.StreamHistory(0), seq); err != nil {
		t.Fatal(err)
	}
}

// stands is where the latest run stands.
func (s *story) stands() string { return stands(s.latest) }

func stands(s *execution.State) string { return fmt.Sprintf("%s at event %d", s.Run, s.LastID) }

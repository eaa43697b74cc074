package schedules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/stats"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// world is a NATS server and brokers in memory, in which masters live and die. Its clock is ahead of the local one.
type world struct {
	t     *testing.T
	ahead time.Duration

	mu           sync.Mutex
	keys         map[string]stored
	rev          uint64
	followers    map[int]func(key string, value []byte, rev uint64, deleted bool)
	runs         map[string]*fakeRun // by run id
	begun        map[string]int      // how often a run of the id was begun
	signals      map[string]int      // by request id
	types        map[string]*schemas.TypeInfo
	notes        []ops.Operation
	refuse       func(q *schemas.StartRequest) error
	takes        time.Duration // how long a run takes; negative: until it is ended
	fails        bool          // runs fail
	requireTypes bool
	stats        stats.Stats
	slotOf       map[string]map[string]int // by schedule and slot: runs that were begun
}

type fakeRun struct {
	q      *schemas.StartRequest
	closed chan struct{}
	status schemas.Status
	result schemas.Payload
	end    time.Time
	asked  bool
}

func newWorld(t *testing.T) *world {
	return &world{
		t: t, keys: map[string]stored{}, followers: map[int]func(string, []byte, uint64, bool){}, runs: map[string]*fakeRun{},
		begun: map[string]int{}, signals: map[string]int{}, types: map[string]*schemas.TypeInfo{}, takes: time.Second,
		slotOf: map[string]map[string]int{},
	}
}

func isState(key string) bool {
	_, state, _ := idOf(key)
	return state
}

func (w *world) now() time.Time { return time.Now().Add(w.ahead) }

// master is a process: once it is dead nothing of it reaches the world, and nothing of the world reaches it.
type master struct {
	w     *world
	s     *Scheduler
	dead  chan struct{}
	die   func()
	ended chan struct{}
	verbs map[string]service.Verb
	ready chan struct{}
	// judge decides before what is written, and after it, whether the process dies there.
	judge func(op string) fate
	// halts says at which write the process is stopped; what it was about to write then, and all else, waits for goOn.
	halts  func(op string) bool
	goOn   chan struct{}
	halted atomic.Bool
}

type fate int

const (
	lives fate = iota
	diesBefore
	diesAfter
)

var errDead = errors.New("this process is dead")

func (w *world) master(judge func(op string) fate) *master {
	return w.begin(&master{judge: judge})
}

// masterStopped is a process that stops at a write, as by SIGSTOP, until goOn is closed.
func (w *world) masterStopped(halts func(op string) bool, goOn chan struct{}) *master {
	return w.begin(&master{halts: halts, goOn: goOn})
}

func (w *world) begin(m *master) *master {
	ctx, cancel := context.WithCancel(stats.With(context.WithoutCancel(w.t.Context()), &w.stats))
	m.w, m.dead, m.ended, m.ready = w, make(chan struct{}), make(chan struct{}), make(chan struct{})
	m.die = sync.OnceFunc(func() { close(m.dead); cancel() })
	m.s = newScheduler(Options{Namespace: "default", RequireTypes: w.requireTypes}, m, fakeEngine{m})
	m.s.serve = func(_ context.Context, verbs []service.Verb) (func(), error) {
		m.verbs = map[string]service.Verb{}
		for _, v := range verbs {
			m.verbs[v.Name] = v
		}
		close(m.ready)
		return func() {}, nil
	}
	m.s.note = func(_ context.Context, o ops.Operation) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.notes = append(w.notes, o)
	}
	go func() {
		defer close(m.ended)
		if err := m.s.Run(ctx); err != nil && !errors.Is(err, errDead) {
			w.t.Errorf("the scheduler ended: %v", err)
		}
	}()
	return m
}

// kill ends the process.
func (m *master) kill() {
	m.die()
	<-m.ended
}

// write is a write of the process.
func (m *master) write(op string, do func()) error {
	if m.halts != nil {
		m.w.mu.Lock()
		if !m.halted.Load() && m.halts(op) {
			m.halted.Store(true)
		}
		m.w.mu.Unlock()
		if m.halted.Load() {
			<-m.goOn
		}
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	select {
	case <-m.dead:
		return errDead
	default:
	}
	f := lives
	if m.judge != nil {
		f = m.judge(op)
	}
	if f == diesBefore {
		m.die()
		return errDead
	}
	do()
	if f == diesAfter {
		m.die()
		return errDead
	}
	return nil
}

func (m *master) States(_ context.Context, fn func(string, []byte, uint64)) error {
	m.w.mu.Lock()
	all := maps.Clone(m.w.keys)
	m.w.mu.Unlock()
	for k, s := range all {
		if isState(k) {
			fn(k, s.value, s.rev)
		}
	}
	return nil
}

func (m *master) Follow(_ context.Context, fn func(string, []byte, uint64, bool)) (<-chan struct{}, func(), error) {
	type change struct {
		key     string
		value   []byte
		rev     uint64
		deleted bool
	}
	changes, done, over := make(chan change, 10000), make(chan struct{}), make(chan struct{})
	w := m.w
	w.mu.Lock()
	n := len(w.followers) + int(w.rev)<<8
	for k, s := range w.keys {
		if !isState(k) {
			changes <- change{k, s.value, s.rev, false}
		}
	}
	first := len(changes)
	w.followers[n] = func(key string, value []byte, rev uint64, deleted bool) { changes <- change{key, value, rev, deleted} }
	w.mu.Unlock()
	present := make(chan struct{})
	go func() {
		defer close(over)
		for i := 0; ; i++ {
			if i == first {
				close(present)
			}
			select {
			case c := <-changes:
				fn(c.key, c.value, c.rev, c.deleted)
			case <-done:
				return
			}
		}
	}()
	stop := func() {
		w.mu.Lock()
		delete(w.followers, n)
		w.mu.Unlock()
		close(done)
		<-over
	}
	return present, stop, nil
}

func (m *master) Get(_ context.Context, key string) ([]byte, uint64, error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	s := m.w.keys[key]
	return s.value, s.rev, nil
}

func (m *master) Put(_ context.Context, key string, value []byte, rev uint64) (got uint64, err error) {
	op := "put record"
	if isState(key) {
		op = "put state"
	}
	dead := m.write(op, func() {
		if have := m.w.keys[key]; have.rev != rev {
			err = &natsconn.SequenceError{Last: have.rev}
			return
		}
		got = m.w.put(key, value)
	})
	return got, cmp.Or(dead, err)
}

// put is called with mu.
func (w *world) put(key string, value []byte) uint64 {
	w.rev++
	w.keys[key] = stored{value, w.rev}
	if !isState(key) {
		for _, f := range w.followers {
			f(key, value, w.rev, false)
		}
	}
	return w.rev
}

func (m *master) Delete(_ context.Context, key string, rev uint64) (err error) {
	dead := m.write("delete", func() {
		if have := m.w.keys[key]; have.rev != rev {
			err = &natsconn.SequenceError{Last: have.rev}
			return
		}
		m.w.rev++
		delete(m.w.keys, key)
		if !isState(key) {
			for _, f := range m.w.followers {
				f(key, nil, m.w.rev, true)
			}
		}
	})
	return cmp.Or(dead, err)
}

func (m *master) Time(context.Context) (time.Time, error) { return m.w.now(), nil }

// fakeEngine has the methods of an engine for a master.
type fakeEngine struct{ *master }

func (m fakeEngine) Start(_ context.Context, q *schemas.StartRequest) (a *schemas.StartResponse, err error) {
	dead := m.write("start", func() { a, err = m.w.start(q) })
	return a, cmp.Or(dead, err)
}

func (w *world) start(q *schemas.StartRequest) (*schemas.StartResponse, error) {
	if w.refuse != nil {
		if err := w.refuse(q); err != nil {
			return nil, err
		}
	}
	a := &schemas.StartResponse{WorkflowID: q.WorkflowID, Run: q.Run}
	if w.runs[q.Run] != nil {
		return a, nil
	}
	for run, r := range w.runs {
		if r.q.WorkflowID == q.WorkflowID && r.status == "" {
			return nil, schemas.Errorf(schemas.CodeAlreadyStarted, "workflow %q is open already, as run %s", q.WorkflowID, run)
		}
	}
	if q.NotAfter < schemas.At(w.now()) {
		return nil, schemas.Errorf(schemas.CodeInvalid, "too late").InField("notAfter")
	}
	r := &fakeRun{q: q, closed: make(chan struct{})}
	w.runs[q.Run] = r
	w.begun[q.Run]++
	id := q.Attributes["schedule"]
	if w.slotOf[id] == nil {
		w.slotOf[id] = map[string]int{}
	}
	w.slotOf[id][q.Attributes["slot"]]++
	a.Started = true
	if w.takes >= 0 {
		status := schemas.StatusCompleted
		if w.fails {
			status = schemas.StatusFailed
		}
		time.AfterFunc(w.takes, func() { w.close(r, status) })
	}
	return a, nil
}

// close ends a run.
func (w *world) close(r *fakeRun, status schemas.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.status == "" {
		r.status, r.end, r.result = status, w.now(), r.q.Input
		close(r.closed)
	}
}

func (m fakeEngine) Signal(_ context.Context, q *schemas.SignalRequest) (a *schemas.SignalResponse, err error) {
	dead := m.write("signal", func() {
		m.w.signals[q.RequestID]++
		a = &schemas.SignalResponse{Run: "open"}
	})
	return a, cmp.Or(dead, err)
}

func (m fakeEngine) End(_ context.Context, q *schemas.ExecutionRequest, terminate bool) error {
	return m.write("end", func() {
		r := m.w.runs[q.Run]
		switch {
		case r == nil:
		case terminate:
			time.AfterFunc(time.Millisecond, func() { m.w.close(r, schemas.StatusTerminated) })
		case !r.asked:
			r.asked = true
			time.AfterFunc(time.Second, func() { m.w.close(r, schemas.StatusCanceled) })
		}
	})
}

func (m fakeEngine) Wait(ctx context.Context, wid, run string) (*drover.Outcome, error) {
	m.w.mu.Lock()
	r := m.w.runs[run]
	m.w.mu.Unlock()
	if r == nil {
		return nil, fmt.Errorf("%w: it is purged", drover.ErrNotFound)
	}
	select {
	case <-r.closed:
		return &drover.Outcome{ID: wid, Run: run, Status: r.status, Result: r.result, Reason: "because"}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m fakeEngine) Type(_ context.Context, name, _ string) (*schemas.TypeInfo, error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	return m.w.types[name], nil
}

// purge forgets what has closed two and a half minutes ago, as the janitor of a master does that has settled what there was.
func (w *world) purge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.runs, func(_ string, r *fakeRun) bool { return r.status != "" && w.now().Sub(r.end) > 150*time.Second })
}

// janitor purges as long as the process lives.
func (m *master) janitor() {
	select {
	case <-m.s.Settled():
	case <-m.dead:
	}
	for {
		select {
		case <-time.After(30 * time.Second):
			m.w.purge()
		case <-m.dead:
			return
		}
	}
}

// ask asks a verb.
func (m *master) ask(verb string, q any) *ops.ScheduleResponse {
	m.w.t.Helper()
	body, err := schemas.MarshalJSON(q)
	if err != nil {
		m.w.t.Fatal(err)
	}
	return m.say(verb, string(body))
}

func (m *master) say(verb, body string) *ops.ScheduleResponse {
	m.w.t.Helper()
	select {
	case <-m.ready:
	case <-time.After(time.Minute):
		m.w.t.Fatal("the scheduler does not serve")
	}
	a, ok := m.verbs[verb].Serve(m.w.t.Context(), natsconn.Msg{Data: []byte(body)}).(*ops.ScheduleResponse)
	if !ok {
		m.w.t.Fatalf("%s: another answer", verb)
	}
	return a
}

func (m *master) must(verb string, q any) *ops.ScheduleResponse {
	m.w.t.Helper()
	a := m.ask(verb, q)
	if a.Error != nil {
		m.w.t.Fatalf("%s: %v", verb, a.Error)
	}
	return a
}

// state is what stands in the bucket.
func (w *world) state(id string) *ops.ScheduleState {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := new(ops.ScheduleState)
	if s, ok := w.keys[stateKey(id)]; ok {
		if err := schemas.Unmarshal(s.value, st); err != nil {
			w.t.Fatal(err)
		}
	}
	return st
}

func (w *world) revision() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rev
}

// countBegun is how many runs were begun.
func (w *world) countBegun() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.begun)
}

// slotsBegun are the slots of a schedule of which runs were begun, in their order. A run that was begun twice fails the test.
func (w *world) slotsBegun(id string) (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for run, n := range w.begun {
		if n > 1 {
			w.t.Errorf("run %s was begun %d times", run, n)
		}
	}
	for slot := range w.slotOf[id] {
		all = append(all, slot)
	}
	slices.Sort(all)
	return all
}

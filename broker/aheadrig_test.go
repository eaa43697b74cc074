package broker_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// player plays a sticky decider worker whose process works list main as well. It decides by what a task shows it, and keeps what
// it is asked. Tasks that come with what is needed to decide ahead it hands to the test.
type player struct {
	f     *fleet
	name  string
	lists []string
	// next decides: done says how many activities of the run have succeeded, with those of the window.
	next  func(t *schemas.DecisionTask, done int) []schemas.Decision
	ahead chan *readAheadState

	mu    sync.Mutex
	asked []*schemas.DecisionTask
	subs  []*nats.Subscription
	alive bool // it says that it can be called
	calls int
	mute  bool // it answers nothing, and keeps it
	kept  []*nats.Msg
}

// steps schedules n activities one after the other, and completes.
func steps(n int, o ...decider.ActivityOption) func(*schemas.DecisionTask, int) []schemas.Decision {
	return func(t *schemas.DecisionTask, done int) []schemas.Decision {
		switch moved := has(t, schemas.EventWorkflowStarted) || has(t, schemas.EventActivitySuccess); {
		case moved && done < n:
			return []schemas.Decision{decider.Schedule(fmt.Sprint("a", done+1), "work", done+1, append([]decider.ActivityOption{decider.List("main")}, o...)...)}
		case moved:
			return []schemas.Decision{decider.Complete("done")}
		}
		return nil
	}
}

func has(t *schemas.DecisionTask, typ schemas.EventType) bool {
	return slices.ContainsFunc(t.Events, func(e schemas.Event) bool { return e.Type() == typ })
}

// plays starts a player for type order.
func (f *fleet) plays(name string, next func(*schemas.DecisionTask, int) []schemas.Decision) *player {
	f.t.Helper()
	p := &player{f: f, name: name, lists: []string{"main"}, next: next, ahead: make(chan *readAheadState, 100)}
	for _, subj := range []string{ns.Decide("order"), ns.DecideSticky("order", name)} {
		queue := ""
		if subj == ns.Decide("order") {
			queue = "deciders"
		}
		sub, err := f.nc.QueueSubscribe(subj, queue, p.hears)
		if err != nil {
			f.t.Fatal(err)
		}
		p.subs = append(p.subs, sub)
	}
	f.flush()
	return p
}

func (p *player) hears(m *nats.Msg) {
	t := &schemas.DecisionTask{}
	if err := schemas.Unmarshal(m.Data, t); err != nil {
		p.f.t.Errorf("decision task %q: %v", m.Data, err)
		return
	}
	if t.Ahead != nil {
		if got := m.Header.Get(schemas.AheadHeader); got != t.Ahead.Task.List {
			p.f.t.Errorf("a task of list %q came for %q", t.Ahead.Task.List, got)
		}
		p.ahead <- &readAheadState{p: p, msg: m, task: t, came: time.Now()}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, t)
	if p.mute {
		p.kept = append(p.kept, m)
		return
	}
	if err := m.Respond(p.pack(p.reply(t))); err != nil {
		p.f.t.Error(err)
	}
}

// asks are the windows of the ordinary tasks so far.
func (p *player) asks() [][]schemas.EventType {
	p.mu.Lock()
	defer p.mu.Unlock()
	var windows [][]schemas.EventType
	for _, t := range p.asked {
		var window []schemas.EventType
		for _, e := range t.Events {
			window = append(window, e.Type())
		}
		windows = append(windows, window)
	}
	return windows
}

func (p *player) leave() {
	p.f.t.Helper()
	for _, s := range p.subs {
		if err := s.Unsubscribe(); err != nil {
			p.f.t.Fatal(err)
		}
	}
	p.f.flush()
}

func (p *player) reply(t *schemas.DecisionTask) *schemas.DecisionReply {
	left := t.Context
	if t.Ahead != nil { // it stands in the window
		for _, e := range t.Events {
			if a, ok := e.Attributes.(*schemas.DeciderCompleted); ok {
				left = a.ExecutionContext
			}
		}
	}
	done, _ := strconv.Atoi(string(left))
	for _, e := range t.Events {
		if e.Type() == schemas.EventActivitySuccess {
			done++
		}
	}
	decisions := p.next(t, done)
	if decisions == nil {
		decisions = []schemas.Decision{}
	}
	return &schemas.DecisionReply{
		Token: t.Token, Identity: p.name, Sticky: p.name, Alive: p.alive, Lists: p.lists, Context: schemas.Payload(strconv.Itoa(done)), Decisions: decisions,
	}
}

func (p *player) pack(v any) []byte {
	body, err := schemas.Marshal(v)
	if err != nil {
		p.f.t.Error(err)
	}
	return body
}

// foresees waits for the next task that comes with what is needed to decide ahead.
func (p *player) foresees() *readAheadState {
	p.f.t.Helper()
	select {
	case g := <-p.ahead:
		return g
	case <-time.After(time.Minute):
		p.f.t.Fatal("no task comes with its decision")
		return nil
	}
}

// readAheadState is such a task.
type readAheadState struct {
	p    *player
	msg  *nats.Msg
	task *schemas.DecisionTask
	came time.Time
}

// success is the outcome of the task, now, with the decision after it.
func (g *readAheadState) success() *schemas.Report {
	a, since := g.task.Ahead, schemas.Duration(time.Since(g.came))
	took := max(since, 1) // 0 means "not said"
	r := &schemas.Report{
		Kind: schemas.ReportSuccess, Token: a.Task.Token, Result: schemas.Payload(`"fine"`), Identity: g.p.name, Nonce: "n-" + a.Task.Token, Elapsed: took,
	}
	at := a.At.Add(since)
	t := *g.task
	last := t.Events[len(t.Events)-1].ID
	t.Events = append(slices.Clone(t.Events),
		schemas.Event{ID: last + 1, Time: max(at.Add(-took), t.Events[len(t.Events)-1].Time), Attributes: &schemas.ActivityStarted{ScheduledEventID: a.Task.ScheduledEventID, Attempt: a.Task.Attempt, Identity: r.Identity, Nonce: r.Nonce}},
		schemas.Event{ID: last + 2, Time: at, Attributes: &schemas.ActivitySuccess{ScheduledEventID: a.Task.ScheduledEventID, StartedEventID: last + 1, Result: r.Result}},
		schemas.Event{ID: last + 3, Time: at, Attributes: &a.Scheduled},
		schemas.Event{ID: last + 4, Time: at, Attributes: &schemas.DeciderStarted{ScheduledEventID: last + 3, Identity: g.p.name}},
	)
	r.Ahead = &schemas.AheadDecision{At: at, Token: t.Token, Reply: g.p.pack(g.p.reply(&t))}
	return r
}

// assumed is what the decision rests upon, as the history should have it.
func (g *readAheadState) assumed(r *schemas.Report) []schemas.Event {
	last := g.task.Events[len(g.task.Events)-1].ID
	a, at := g.task.Ahead, r.Ahead.At
	return append(slices.Clone(g.task.Events),
		schemas.Event{ID: last + 1, Time: max(at.Add(-r.Elapsed), g.task.Events[len(g.task.Events)-1].Time), Attributes: &schemas.ActivityStarted{ScheduledEventID: a.Task.ScheduledEventID, Attempt: a.Task.Attempt, Identity: r.Identity, Nonce: r.Nonce}},
		schemas.Event{ID: last + 2, Time: at, Attributes: &schemas.ActivitySuccess{ScheduledEventID: a.Task.ScheduledEventID, StartedEventID: last + 1, Result: r.Result}},
		schemas.Event{ID: last + 3, Time: at, Attributes: &a.Scheduled},
		schemas.Event{ID: last + 4, Time: at, Attributes: &schemas.DeciderStarted{ScheduledEventID: last + 3, Identity: r.Identity}},
	)
}

// hand gives an outcome to the owner.
func (g *readAheadState) hand(r *schemas.Report) (stored bool) {
	g.p.f.t.Helper()
	return g.p.f.hand(direct(g.task.Ahead.Task.Beat), string(g.p.pack(r)))
}

// refuse says that there is no room.
func (g *readAheadState) refuse() {
	g.p.f.t.Helper()
	if err := g.msg.Respond([]byte("busy")); err != nil {
		g.p.f.t.Fatal(err)
	}
}

// foreseen starts an owner and workflow "o" of type order, and does its first activity, so that the second is to be decided ahead.
func (f *fleet) foreseen(next func(*schemas.DecisionTask, int) []schemas.Decision) (g *readAheadState, p *player, a *node) {
	f.t.Helper()
	a = f.node("a", nil)
	p = f.plays("w1", next)
	f.start(startO)
	f.quick()
	return p.foresees(), p, a
}

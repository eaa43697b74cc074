package machine

import (
	"maps"
	"slices"
	"strconv"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
	"github.com/droverhq/drover/decider/workflow/internal/match"
	"github.com/droverhq/drover/schemas"
)

// name returns the next name of what a coroutine asks for: such as charge#2, or 1.2/charge#1 in the
// second coroutine that the first one has begun.
func (m *Machine) name(c *coroutine.Coroutine, of string) string {
	if c.Name() != coroutine.Main {
		of = c.Name() + "/" + of
	}
	m.names[of]++
	return of + "#" + strconv.Itoa(m.names[of])
}

// ask adds something to the decision of the turn.
func (m *Machine) ask(a schemas.DecisionAttributes) {
	ask := match.Ask{Decision: schemas.Decide(a)}
	if !m.Live() { // else nothing is compared
		ask.Line = coroutine.Here()
	}
	m.asks = append(m.asks, ask)
}

// unasked takes back what was asked for in this turn. It reports false if the history has it.
func (m *Machine) unasked(asked schemas.DecisionAttributes) bool {
	n := slices.IndexFunc(m.asks, func(a match.Ask) bool { return a.Decision.Attributes == asked })
	if n < 0 {
		return false
	}
	m.asks = slices.Delete(m.asks, n, n+1)
	return true
}

// comes tells whether this turn has an event yet to be delivered: what has ended already is not
// canceled.
func (m *Machine) comes(is func(schemas.Attributes) bool) bool {
	return slices.ContainsFunc(m.left, func(e schemas.Event) bool { return is(e.Attributes) })
}

// cancel takes back what was asked for in this turn, or asks for its end unless that is coming.
func (m *Machine) cancel(
	f *Future, asked schemas.DecisionAttributes, key string, request schemas.DecisionAttributes,
) {
	f.cancel = nil
	if m.unasked(asked) {
		delete(m.open, key)
		f.settle(Outcome{Kind: Canceled})
		return
	}
	ends := func(a schemas.Attributes) bool {
		scheduled, _ := ending(a)
		return m.scheduled[scheduled] == f
	}
	if !m.comes(ends) {
		m.ask(request)
	}
}

// notAsked returns what takes the place of something that cannot be asked for; nil if it can.
func notAsked(s *Scope, name string, err error) *Future {
	switch {
	case err != nil:
		return &Future{Name: name, err: err, ready: true}
	case s.err != nil:
		return &Future{Name: name, outcome: Outcome{Kind: Canceled}, ready: true}
	}
	return nil
}

// Schedule asks for an activity. The name of the future is the activity's id, which a is given.
func (m *Machine) Schedule(s *Scope, a *schemas.ScheduleActivity) *Future {
	c, err := m.Enter("workflow.Start")
	if f := notAsked(s, a.ActivityType, err); f != nil {
		return f
	}
	a.ActivityID = m.name(c, a.ActivityType)
	f := &Future{Name: a.ActivityID}
	m.open["activity "+f.Name] = f
	s.enter(f)
	m.ask(a)
	f.cancel = func() {
		m.cancel(f, a, "activity "+f.Name, &schemas.RequestCancelActivity{ActivityID: f.Name})
	}
	return f
}

// Timer asks for a timer that expires at a time of the run's clock.
func (m *Machine) Timer(s *Scope, at schemas.Timestamp) *Future {
	c, err := m.Enter("workflow.Timer")
	if f := notAsked(s, "timer", err); f != nil {
		return f
	}
	f := &Future{Name: m.name(c, "timer")}
	m.open["timer "+f.Name] = f
	s.enter(f)
	// The broker counts from the decision, which may be made long after the event that the code has
	// seen.
	left := max(schemas.Duration(at.Sub(m.turn.At)), 0)
	t := &schemas.ScheduleTimer{TimerID: f.Name, StartToFireTimeout: left}
	m.ask(t)
	f.cancel = func() { m.cancelTimer(f, t) }
	return f
}

// cancelTimer ends a timer at once; one that expires in this turn need not be taken back.
func (m *Machine) cancelTimer(f *Future, asked *schemas.ScheduleTimer) {
	delete(m.open, "timer "+f.Name)
	expires := func(a schemas.Attributes) bool {
		t, ok := a.(*schemas.TimerExpired)
		return ok && t.TimerID == f.Name
	}
	if !m.unasked(asked) && !m.comes(expires) {
		m.ask(&schemas.CancelTimer{TimerID: f.Name})
	}
	f.settle(Outcome{Kind: Canceled})
}

// Go begins a coroutine. Its name has the path of the one that runs.
func (m *Machine) Go(f func() (any, error)) *Future {
	c, err := m.Enter("workflow.Go")
	future := &Future{Name: "a coroutine"}
	if err != nil {
		future.err, future.ready = err, true
		return future
	}
	c.Go(func(c *coroutine.Coroutine) {
		future.Name = "coroutine " + c.Name()
		future.value, future.err = f()
		future.finish()
	})
	return future
}

// recorded returns the details of a marker of the turn's decision. found is false in a live turn,
// and in a replayed one that does not have it.
func (m *Machine) recorded(name string) (details schemas.Payload, found bool) {
	for _, e := range m.turn.Block {
		if a, ok := e.Attributes.(*schemas.Marker); ok && a.MarkerName == name {
			return a.Details, true
		}
	}
	return nil, false
}

// Once returns what f returns, which is recorded: a replay does not call it.
func (m *Machine) Once(of string, f func() schemas.Payload) schemas.Payload {
	c := m.MustEnter("workflow.Once")
	name := m.name(c, of)
	if m.Live() {
		var p schemas.Payload
		c.Watch("the function of Once", func() { p = f() })
		m.ask(&schemas.RecordMarker{MarkerName: name, Details: p})
		return p
	}
	p, found := m.recorded(name)
	if !found {
		m.differ(c, "the code asks for the side effect %s, the history does not have it there",
			name)
	}
	m.ask(&schemas.RecordMarker{MarkerName: name, Details: p})
	return p
}

// Changed tells whether the run takes the new way of a change: one that came by here before the
// change takes the old way. The first call of a run decides for all of it.
func (m *Machine) Changed(id string) bool {
	m.MustEnter("workflow.Changed")
	if was, known := m.changes[id]; known {
		return was
	}
	m.changes[id] = m.change(id)
	return m.changes[id]
}

// ChangedFrom is Changed that is decided anew at each call until it is true: for loops.
func (m *Machine) ChangedFrom(id string) bool {
	m.MustEnter("workflow.ChangedFrom")
	if !m.changes[id] {
		m.changes[id] = m.change(id)
	}
	return m.changes[id]
}

func (m *Machine) change(id string) bool {
	name := match.ChangePrefix + id
	if _, found := m.recorded(name); !m.Live() && !found {
		return false
	}
	m.ask(&schemas.RecordMarker{MarkerName: name})
	return true
}

// SetAttributes changes what the run shows in lists. Those of one turn are one decision.
func (m *Machine) SetAttributes(values map[string]string) {
	m.MustEnter("workflow.SetAttributes")
	for _, a := range m.asks {
		if s, ok := a.Decision.Attributes.(*schemas.SetAttributes); ok {
			maps.Copy(s.Attributes, values)
			return
		}
	}
	m.ask(&schemas.SetAttributes{Attributes: maps.Clone(values)})
}

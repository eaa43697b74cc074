package execution

import (
	"fmt"
	"reflect"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/schemas"
)

// game plays random messages against one run and looks at everything that comes of each. It does not care where its
// chance comes from: the property tests and the fuzz target play the same game.
//
// Four states take part: one lives through the messages as an owner does, one reads the history as a new owner would, one
// is restored from a snapshot in the midst of it and gets the same messages from there on, and one lives through it all
// once more at the end.
type game struct {
	d    dice
	c    Config
	lazy bool // several steps make one record

	now, server schemas.Timestamp
	lived, read *State
	twin        *State // nil until a snapshot is taken
	committed   int64
	events      []schemas.Event
	turns       []turn

	check   *checker.History // fed event by event; asked after each step, as if its record ended there
	records *checker.History // fed record by record with the server's times; only if each step is a record
	model   model
	granted map[string]string // token → nonce that may run
	closes  int

	closedAt int    // the turn of the close
	fence    uint64 // the highest of a lock
}

// dice are the chance of a game.
type dice interface {
	// roll returns a number from 0 to n-1.
	roll(n int) int
}

// turn is one thing that happened and what came of it.
type turn struct {
	message Message // nil for a heartbeat or a commit
	beat    *schemas.Heartbeat
	commit  int64 // its first event
	now     schemas.Timestamp
	events  []schemas.Event
	effects []Effect
}

func difference[T any](want, got T) string {
	if reflect.DeepEqual(want, got) { // much faster
		return ""
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

func newGame(d dice) *game {
	g := &game{
		d: d, now: 1_767_000_000_000_000_000, lived: New("order", "run.1"), read: New("order", "run.1"),
		check: checker.New("order", "run.1"), records: checker.New("order", "run.1"), granted: map[string]string{},
	}
	g.server = g.now
	g.lazy = d.roll(2) == 1
	g.c = Config{
		DeciderAttempts: 1 + d.roll(4), OpenActivities: 1 + d.roll(5), OpenTimers: 1 + d.roll(3), DeciderTimeout: seconds(float64(1 + d.roll(20))),
		OpenChildren: 1 + d.roll(3), OpenExternals: 1 + d.roll(3), OpenLocks: 1 + d.roll(4), OpenStates: 1 + d.roll(3), MaxEvents: pick[int64](d, 0, 0, 25),
	}.Defaults()
	g.model.attempts = g.c.DeciderAttempts
	return g
}

// play lets a message happen and looks at what comes of it.
func (g *game) play(m Message) error {
	before, due := g.lived.LastID, g.lived.NextDue(&g.c)
	events, effects := g.lived.Step(&g.c, m, g.now)
	g.turns = append(g.turns, turn{message: m, now: g.now, events: events, effects: effects})
	g.events = append(g.events, events...)
	if g.twin != nil {
		e, f := g.twin.Step(&g.c, m, g.now)
		if diff := difference(events, e) + difference(effects, f); diff != "" {
			return fmt.Errorf("%T: the state that was restored from a snapshot (+) does otherwise:\n%s", m, diff)
		}
	}
	for _, e := range events {
		g.read.Apply(e)
		g.read.NextDue(&g.c) // any prefix will do
		g.read.WantsDecider(&g.c)
		g.read.OpenEffects(g.now)
		for _, v := range g.check.Event(e) {
			return fmt.Errorf("%T: %s", m, v)
		}
		g.model.see(e)
	}
	for _, v := range g.check.End() {
		return fmt.Errorf("%T: %s", m, v)
	}
	if _, is := m.(AlarmFired); is {
		if err := g.checkFire(due, len(events)+len(effects)); err != nil {
			return err
		}
	}
	if err := g.checkEffects(m, before, events, effects); err != nil {
		return err
	}
	if err := g.checkSuggestions(before); err != nil {
		return fmt.Errorf("%T: %w", m, err)
	}
	if err := g.checkState(); err != nil {
		return fmt.Errorf("%T: %w", m, err)
	}
	if !g.lazy {
		return g.commit()
	}
	return nil
}

// over tells whether the run has been closed for a while.
func (g *game) over() bool { return g.closes > 0 && len(g.turns) > g.closedAt+12 }

// commit gives the events since the last commit the server's time of their record.
func (g *game) commit() error {
	if g.lived.LastID == g.committed {
		return nil
	}
	lag := []schemas.Timestamp{0, 1, 3_000_000, 2_000_000_000}[g.d.roll(4)]
	g.server = max(g.server, g.now, g.lived.LastTime) + lag
	first := g.committed + 1
	for _, s := range []*State{g.lived, g.read, g.twin} {
		if s != nil {
			s.Rebase(first, g.server)
		}
	}
	g.turns = append(g.turns, turn{commit: first, now: g.server})
	if !g.lazy {
		record := &schemas.Record{WorkflowID: "order", Run: "run.1", First: first, Events: g.events[g.committed:]}
		for _, v := range g.records.Record(record, nil, g.server) {
			return fmt.Errorf("record of event %d: %s", first, v)
		}
	}
	g.committed = g.lived.LastID
	return g.checkState()
}

// beat lets a heartbeat come in.
func (g *game) beat(h *schemas.Heartbeat) error {
	answer := g.lived.Beat(h, "", g.now)
	g.turns = append(g.turns, turn{beat: h, now: g.now})
	if g.twin != nil {
		if other := g.twin.Beat(h, "", g.now); other != answer {
			return fmt.Errorf("heartbeat: got %+v, and %+v from the restored state", answer, other)
		}
	}
	_, id, attempt, err := ParseToken(h.Token)
	a := g.lived.Activities[id]
	if believed := err == nil && a != nil && a.Attempt == attempt && Token(g.lived.Run, id, attempt) == h.Token; answer.Gone == believed {
		return fmt.Errorf("heartbeat with token %q: got %+v for %+v", h.Token, answer, a)
	}
	return g.checkState()
}

// snapshot makes the twin: what a new owner restores. Heartbeats are not in it; the owner counts them anew, the twin gets
// them, so that it may be compared.
func (g *game) snapshot() error {
	b, err := g.lived.Snapshot()
	if err != nil {
		return err
	}
	if g.twin, err = Restore(b); err != nil {
		return err
	}
	for id, a := range g.twin.Activities {
		a.LastBeat, a.BeatDetails = g.lived.Activities[id].LastBeat, g.lived.Activities[id].BeatDetails
	}
	return g.checkState()
}

// checkState compares the states with each other and with the model, and the state with itself.
func (g *game) checkState() error {
	s := g.lived
	if diff := sameState(g.read, s); diff != "" {
		return fmt.Errorf("the state that was read from the history (-) is another:\n%s", diff)
	}
	if g.twin != nil {
		if diff := sameState(g.twin, s); diff != "" {
			return fmt.Errorf("the state that was restored from a snapshot (-) is another:\n%s", diff)
		}
	}
	if len(s.Activities) > g.c.OpenActivities || len(s.Timers) > g.c.OpenTimers {
		return fmt.Errorf("%d activities and %d timers are open, want at most %d and %d", len(s.Activities), len(s.Timers), g.c.OpenActivities, g.c.OpenTimers)
	}
	if len(s.Children) > g.c.OpenChildren || len(s.Externals) > g.c.OpenExternals {
		return fmt.Errorf("%d children and %d errands are open, want at most %d and %d", len(s.Children), len(s.Externals), g.c.OpenChildren, g.c.OpenExternals)
	}
	if most := g.c.hardLimit(); s.LastID >= most && !s.Closed() {
		return fmt.Errorf("%d events and still open, want the end at %d", s.LastID, most)
	}
	if err := g.checkRequests(); err != nil {
		return err
	}
	if len(s.Locks) > g.c.OpenLocks {
		return fmt.Errorf("%d locks, want at most %d", len(s.Locks), g.c.OpenLocks)
	}
	for id, a := range s.Activities {
		if s.ActivityByID(a.Scheduled.ActivityID) != a || a.ScheduledID != id {
			return fmt.Errorf("activity %q of event %d is not found by its id", a.Scheduled.ActivityID, id)
		}
	}
	return g.model.compare(s, &g.c)
}

// checkFire: a ring before its time does nothing, and one in time moves what is due, so that alarms cannot spin.
func (g *game) checkFire(due schemas.Timestamp, outcome int) error {
	next := g.lived.NextDue(&g.c)
	switch ripe := due != 0 && due <= g.now; {
	case !ripe && (outcome > 0 || next != due):
		return fmt.Errorf("a ring at %s did something; due was %s, is %s", g.now, due, next)
	case ripe && next != 0 && next <= due:
		return fmt.Errorf("a ring at %s left what was due at %s; due is %s", g.now, due, next)
	}
	return nil
}

func (g *game) checkEffects(m Message, before int64, events []schemas.Event, effects []Effect) error {
	permits := 0
	for i, e := range effects {
		switch e := e.(type) {
		case Dispatch:
			a := g.lived.Activities[e.ScheduledID]
			if a != nil && (a.Started != 0 && !(a.Offered && e.Store) || a.NotBefore > g.now) || a == nil && !closedIn(events, e.ScheduledID) && !g.lived.Closed() {
				return fmt.Errorf("%T: dispatches event %d, which is %+v", m, e.ScheduledID, a)
			}
		case Inquire:
			if a := g.lived.Activities[e.ScheduledID]; a == nil || !a.Offered || a.Attempt != e.Attempt || a.Worker != e.Worker {
				return fmt.Errorf("%T: asks %+v of %+v", m, e, a)
			}
		case Closed:
			g.closedAt = len(g.turns)
			if g.closes++; g.closes > 1 || !g.lived.Closed() || i != len(effects)-1 {
				return fmt.Errorf("%T: effect %d of %d says for the %d. time that the run closed; its status is %s", m, i, len(effects), g.closes, g.lived.Status)
			}
		case StartChild, Request, EndChild, Answer:
			if err := g.checkErrand(e); err != nil {
				return fmt.Errorf("%T: %w", m, err)
			}
		case AskState:
			if err := g.checkAsk(e); err != nil {
				return fmt.Errorf("%T: %w", m, err)
			}
		case EnterLock, LeaveLock:
			if err := g.checkLock(e, effects); err != nil {
				return fmt.Errorf("%T: %w", m, err)
			}
		case Permit:
			permits++
			if err := g.checkPermit(e.Permission); err != nil {
				return fmt.Errorf("%T: %w", m, err)
			}
		case Dead:
			if len(effects) != 1 || g.lived.LastID != before || e.Details == "" {
				return fmt.Errorf("%T: a dead letter (%+v) must leave no trace; got %d events and %d effects", m, e, len(events), len(effects))
			}
		}
	}
	if g.lived.Closed() != (g.closes == 1) {
		return fmt.Errorf("%T: the run is %s, and it was told %d times that it closed", m, g.lived.Status, g.closes)
	}
	if r, ok := m.(Report); ok && r.Report.Kind == schemas.ReportBegin && permits+len(of[Dead](effects)) != 1 {
		return fmt.Errorf("a question got %d answers", permits)
	}
	return nil
}

// checkErrand: what is asked of other workflows stands in the state, and children are ended only by a run that was.
func (g *game) checkErrand(e Effect) error {
	switch e := e.(type) {
	case StartChild:
		if c := g.lived.Children[e.ScheduledID]; c == nil || c.Started != 0 || g.lived.ChildStart(c).Run != c.Scheduled.Run {
			return fmt.Errorf("asks for the child of event %d, which is %+v", e.ScheduledID, c)
		}
	case Request:
		x := g.lived.Externals[e.ScheduledID]
		if x == nil {
			return fmt.Errorf("sends the errand of event %d, which is not open", e.ScheduledID)
		}
		if kind, target, body := g.lived.RequestOf(x); target == "" || body == nil || (kind == "signal") != (x.Signal != nil) {
			return fmt.Errorf("the errand of event %d is a %s for %q", e.ScheduledID, kind, target)
		}
	case EndChild:
		if c := g.lived.Children[e.ScheduledID]; c == nil || !g.lived.Closed() || e.Policy == schemas.ChildAbandon || e.Policy == "" {
			return fmt.Errorf("ends the child of event %d (%+v) by policy %q; the run is %s", e.ScheduledID, c, e.Policy, g.lived.Status)
		}
	case Answer:
		if e.To.WorkflowID == "" || e.Answer.ScheduledEventID == 0 || e.Answer.SourceRun != e.To.Run {
			return fmt.Errorf("answers %+v", e)
		}
	}
	return nil
}

func closedIn(events []schemas.Event, scheduled int64) bool {
	for _, e := range events {
		switch a := e.Attributes.(type) {
		case *schemas.ActivityCanceled:
			if a.ScheduledEventID == scheduled {
				return true
			}
		case *schemas.ActivityTimedOut:
			if a.ScheduledEventID == scheduled {
				return true
			}
		case *schemas.ActivityScheduledTimeout:
			if a.ScheduledEventID == scheduled {
				return true
			}
		}
	}
	return false
}

// checkPermit: go is for an attempt that is at work, and for one delivery only (P-7).
func (g *game) checkPermit(p schemas.Permission) error {
	if !p.Go {
		if (p.Reason == "") == (p.Done == "") || p.Token != "" {
			return fmt.Errorf("a refusal says %+v", p)
		}
		return nil
	}
	_, id, attempt, err := ParseToken(p.Token)
	if err != nil {
		return err
	}
	a := g.lived.Activities[id]
	if a == nil || a.Started == 0 || a.Attempt != attempt || p.Attempt != attempt || a.Nonce != p.Nonce {
		return fmt.Errorf("go for %+v, the activity is %+v", p, a)
	}
	if other, ok := g.granted[p.Token]; ok && (other != p.Nonce || p.Nonce == "") {
		return fmt.Errorf("attempt %s may run twice: go for nonce %q after %q", p.Token, p.Nonce, other)
	}
	g.granted[p.Token] = p.Nonce
	return nil
}

// again plays the whole game once more: the same input must give the same output, to the byte.
func (g *game) again() error {
	s := New("order", "run.1")
	for i, t := range g.turns {
		switch {
		case t.beat != nil:
			s.Beat(t.beat, "", t.now)
		case t.message == nil:
			s.Rebase(t.commit, t.now)
		default:
			events, effects := s.Step(&g.c, t.message, t.now)
			if diff := difference(t.events, events) + difference(t.effects, effects); diff != "" {
				return fmt.Errorf("turn %d, %T: the second time (+) is not the first:\n%s", i, t.message, diff)
			}
		}
	}
	return nil
}

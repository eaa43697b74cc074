package broker_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/schemas"
)

// lives lets a player be called from now on.
func (p *player) lives() {
	p.f.t.Helper()
	sub, err := p.f.nc.Subscribe(ns.DecideAlive("order", p.name), func(m *nats.Msg) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.calls++; len(m.Data) > 0 {
			p.f.t.Errorf("it was called with %q", m.Data)
		}
	})
	if err != nil {
		p.f.t.Fatal(err)
	}
	p.f.flush()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subs, p.alive = append(p.subs, sub), true
}

// keeps lets a player keep what it is asked from now on, and returns when that are n tasks.
func (p *player) keeps(n int, ask func()) {
	p.f.t.Helper()
	p.mu.Lock()
	p.mute = true
	p.mu.Unlock()
	ask()
	for range 1000 {
		p.mu.Lock()
		have := len(p.kept)
		p.mu.Unlock()
		if have == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	p.f.t.Fatalf("%s was not asked %d times", p.name, n)
}

// answers sends what a player has kept.
func (p *player) answers() {
	p.f.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.kept {
		t := &schemas.DecisionTask{}
		if err := schemas.Unmarshal(m.Data, t); err != nil {
			p.f.t.Fatal(err)
		}
		if err := m.Respond(p.pack(p.reply(t))); err != nil {
			p.f.t.Fatal(err)
		}
	}
	p.kept = nil
}

func (p *player) called() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// soon is how long it may take until a worker is found to be gone, and somebody else has answered.
const soon = 350 * time.Millisecond

// known lets player w1, which can be called, decide for workflow "o", whose first task is on the list.
func (f *fleet) known(n int) *player {
	f.t.Helper()
	f.node("a", nil)
	return f.knows(n)
}

// anyones is known(2) of a type that strangers decide for, too: first questions go to anybody.
func (f *fleet) anyones() *player {
	f.t.Helper()
	f.node("a", nil)
	f.stranger()
	return f.knows(2)
}

func (f *fleet) knows(n int) *player {
	f.t.Helper()
	p := f.plays("w1", steps(n))
	p.lives()
	f.start(startO)
	f.await("o", schemas.EventActivityScheduled)
	return p
}

// stranger lets somebody in another language decide for a run: from then on the type's first questions go to anybody.
func (f *fleet) stranger() {
	f.t.Helper()
	sub := f.decider("order", func(*decisionTask) string { return complete })
	f.start(`{"workflowId":"stranger","type":"order"}`)
	f.completes("stranger")
	if err := sub.Unsubscribe(); err != nil {
		f.t.Fatal(err)
	}
	f.flush()
}

const startP = `{"workflowId":"p","type":"order","run":"r2"}`

// What a decider that has died was asked somebody else is asked long before the deadline, and the history shows nothing of it.
func TestDeciderDiesWithATask(t *testing.T) {
	for name, c := range map[string]struct {
		sticky bool
		after  time.Duration // for how long it had the task
		absent time.Duration // until somebody else is there
	}{
		"its own":                               {sticky: true},
		"its own, and the history says so":      {sticky: true, after: time.Second},
		"its own, for long":                     {sticky: true, after: 4 * time.Second},
		"anyone's":                              {},
		"anyone's, and the history says so":     {after: time.Second},
		"its own, and nobody else is there yet": {sticky: true, absent: 3 * time.Second},
		"anyone's, and nobody is there yet":     {absent: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				p := f.anyones()
				id := "p"
				p.keeps(1, func() {
					if c.sticky {
						id = "o"
						f.quick()
					} else {
						f.start(startP)
					}
				})
				time.Sleep(c.after)
				p.leave()
				died := time.Now()
				time.Sleep(c.absent)
				came := time.Now()
				q := f.plays("w2", steps(2))
				q.lists = nil // no tasks ahead
				if err := f.nc.Publish(ns.Announce("order"), nil); err != nil {
					t.Fatal(err)
				}
				for n := 1; f.count(id, schemas.EventDeciderCompleted) < map[bool]int{true: 2, false: 1}[c.sticky]; n++ {
					if n > 500 {
						t.Fatalf("nobody has decided: %v", f.types(id))
					}
					time.Sleep(10 * time.Millisecond)
				}
				limit := soon
				if c.sticky {
					limit += c.after / 4 // a task that is older is called for less often
				}
				if took := time.Since(died); c.absent == 0 && took > limit {
					t.Errorf("it took %v, want at most %v", took, limit)
				}
				if took := time.Since(came); c.absent > 0 && took > 50*time.Millisecond {
					t.Errorf("it took %v from when somebody was there", took)
				}
				if !c.sticky {
					f.success(f.pullOf(id, "a1"), time.Millisecond)
				}
				f.success(f.pullOf(id, "a2"), time.Millisecond)
				f.completes(id)
				if diff := cmp.Diff(twoActivities, f.types(id)); diff != "" {
					t.Errorf("history (-want +got):\n%s", diff)
				}
				if dead := f.dead(); len(dead) > 0 {
					t.Errorf("dead letters %v", dead)
				}
			})
		})
	}
}

// pullOf takes tasks until that of an activity comes.
func (f *fleet) pullOf(wid, activity string) *task {
	f.t.Helper()
	for {
		if k := f.pull(); k.WorkflowID == wid && k.ActivityID == activity {
			return k
		}
	}
}

// A decider that takes long is called, a few times, and nobody is asked in its place.
func TestSlowDeciderIsCalled(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		p := f.known(1)
		p.keeps(1, f.quick)
		var others seen
		f.decider("order", func(t *decisionTask) string { others.add(t.WorkflowID); return "" })
		if n := p.called(); n != 0 {
			t.Errorf("it was called %d times while it was quick", n)
		}
		time.Sleep(150 * time.Millisecond)
		if n := p.called(); n != 1 {
			t.Errorf("it was called %d times within 150 ms, want once", n)
		}
		time.Sleep(8 * time.Second)
		if n := p.called(); n < 10 || n > 30 {
			t.Errorf("it was called %d times in 8 s, want 10 to 30", n)
		}
		p.answers()
		f.completes("o")
		if asked := others.take(); len(p.asks()) != 2 || len(asked) > 0 {
			t.Errorf("it was asked %d times, others for %v", len(p.asks()), asked)
		}
		if got := f.count("o", schemas.EventDeciderCompleted); got != 2 {
			t.Errorf("%d decisions, want 2", got)
		}
		before := p.called()
		time.Sleep(5 * time.Second)
		if n := p.called(); n != before {
			t.Errorf("it was called %d times while it had nothing", n-before)
		}
	})
}

// Whoever is at something for long is called seldom; what it is given meanwhile is missed as soon as anything else.
func TestTaskBesideASlowOne(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		p := f.known(2)
		p.keeps(1, f.quick)
		time.Sleep(8 * time.Second)
		p.keeps(2, func() { f.start(startP) })
		p.leave()
		died := time.Now()
		f.plays("w2", steps(2))
		f.await("p", schemas.EventActivityScheduled)
		if took := time.Since(died); took > soon {
			t.Errorf("it took %v", took)
		}
	})
}

// Of two that were asked the first answer counts, and the other is no dead letter.
func TestTwoAnswerATask(t *testing.T) {
	for _, first := range []string{"who was thought to be gone", "the other"} {
		t.Run(first, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				p := f.known(2)
				p.keeps(1, f.quick)
				p.leave() // its connection is lost, and it is at work still
				q := f.plays("w2", steps(2))
				q.keeps(1, func() {})
				if first == "the other" {
					p, q = q, p
				}
				p.answers()
				f.flush()
				for n := 0; f.count("o", schemas.EventDeciderCompleted) < 2; n++ {
					if n == 100 {
						t.Fatal("the first answer was not taken")
					}
					time.Sleep(10 * time.Millisecond)
				}
				q.answers()
				f.success(f.pull(), time.Millisecond)
				if first == "the other" { // who has answered first is asked next
					p.answerFrom(t)
				} else {
					q.answerFrom(t)
				}
				f.completes("o")
				if diff := cmp.Diff(twoActivities, f.types("o")); diff != "" {
					t.Errorf("history (-want +got):\n%s", diff)
				}
				if dead := f.dead(); len(dead) > 0 {
					t.Errorf("dead letters %v", dead)
				}
			})
		})
	}
}

// answerFrom lets a player answer at once again.
func (p *player) answerFrom(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	p.mute = false
	p.mu.Unlock()
	p.answers()
}

// What takes long may be with anybody: it is not asked again because one of them has gone.
func TestLongDecisionOfAnyoneIsNotAskedAgain(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		p := f.anyones()
		p.keeps(1, func() { f.start(startP) })
		time.Sleep(3 * time.Second)
		p.keeps(2, f.quick) // so that it is called
		p.leave()
		var asked seen
		f.decider("order", func(t *decisionTask) string { asked.add(t.WorkflowID); return "" })
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"o"}, asked.take()); diff != "" {
			t.Errorf("asked again (-want +got):\n%s", diff)
		}
		f.await("p", schemas.EventDeciderTimedOut)
	})
}

// The task that a worker had to do ahead, or by an offer, is for others as soon as it is gone.
func TestWorkerDiesWithAnOfferAndIsMissed(t *testing.T) {
	for name, c := range map[string]struct{ ahead, idle bool }{
		"with a decision to come, and somebody is idle": {ahead: true, idle: true},
		"with a decision to come":                       {ahead: true},
		"by an offer":                                   {},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				p := f.known(2)
				var offers <-chan *nats.Msg
				f.quick()
				g := p.foresees()
				token := g.task.Ahead.Task.Token
				if c.idle {
					offers = f.idle()
				}
				if !c.ahead {
					taken := make(chan *nats.Msg, 1)
					sub, err := f.nc.ChanQueueSubscribe(ns.Offer("main"), "workers", taken)
					if err != nil {
						t.Fatal(err)
					}
					p.subs = append(p.subs, sub)
					g.refuse()
					<-taken
				}
				p.leave()
				f.plays("w2", steps(2))
				died := time.Now()
				var k *task
				if c.idle {
					k = f.opened(<-offers)
				} else {
					k = f.pull()
				}
				if took := time.Since(died); took > soon {
					t.Errorf("it took %v", took)
				}
				if k.Token != token || k.NotIdempotent != !c.ahead {
					t.Errorf("got task %s, ask first: %t, want %s", k.Token, k.NotIdempotent, token)
				}
				f.success(k, time.Millisecond)
				f.completes("o")
				if got := f.types("o"); len(got) != len(twoActivities) {
					t.Errorf("history %v", got)
				}
			})
		})
	}
}

// A worker that stops in good order is not missed: what others have in hand is not asked again.
func TestWorkerThatSaysGoodbye(t *testing.T) {
	for name, c := range map[string]struct {
		says, late bool
		want       int
	}{
		"it says so": {says: true, want: 1},
		"it says so, and its last answer is heard later": {says: true, late: true, want: 1},
		"it says nothing": {want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				p := f.anyones()
				if c.late {
					p.keeps(1, f.quick)
				}
				if err := p.subs[0].Unsubscribe(); err != nil { // it drains
					t.Fatal(err)
				}
				q := f.plays("w2", steps(2))
				q.keeps(1, func() { f.start(startP) })
				if c.says {
					if err := f.nc.Publish(ns.Announce("order"), p.pack(&schemas.Announcement{Type: "order", Left: "w1"})); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				p.answers()
				synctest.Wait()
				p.subs = p.subs[1:]
				p.leave()
				time.Sleep(1500 * time.Millisecond)
				if n := len(q.asks()); n != c.want {
					t.Errorf("the other worker was asked %d times, want %d", n, c.want)
				}
				q.answerFrom(t)
				f.success(f.pullOf("p", "a1"), time.Millisecond)
				f.success(f.pullOf("p", "a2"), time.Millisecond)
				f.completes("p")
			})
		})
	}
}

// An answer that a former owner has passed on does not say that its worker is there: it may have left before the new owner listened.
func TestWorkerThatLeftBeforeAHandOver(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		owner, heir := f.two()
		p := f.plays("w1", steps(2))
		p.lives()
		p.keeps(1, func() { f.start(startO) })
		if err := f.nc.Publish(ns.Announce("order"), p.pack(&schemas.Announcement{Type: "order", Left: "w1"})); err != nil {
			t.Fatal(err)
		}
		f.flush()
		gone := make(chan struct{})
		go func() { owner.stop(); close(gone) }()
		defer func() { <-gone }()
		for range 1000 {
			if len(heir.broker.Owned()) == 1 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		p.answers()
		f.await("o", schemas.EventActivityScheduled)
		p.leave()
		q := f.plays("w2", steps(2))
		q.keeps(1, func() { f.start(startP) })
		time.Sleep(1500 * time.Millisecond)
		if n := len(q.asks()); n != 1 {
			t.Errorf("the other worker was asked %d times, want once", n)
		}
		q.answerFrom(t)
	})
}

// Who decides for several types is known for all of them.
func TestWorkerOfManyTypes(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		p := f.known(2)
		sub, err := f.nc.QueueSubscribe(ns.Decide("other"), "deciders", p.hears)
		if err != nil {
			t.Fatal(err)
		}
		p.subs = append(p.subs, sub)
		f.flush()
		f.start(`{"workflowId":"x","type":"other","run":"r3"}`)
		f.await("x", schemas.EventActivityScheduled)
		p.keeps(1, func() { f.start(`{"workflowId":"y","type":"other","run":"r4"}`) })
		p.leave()
		died := time.Now()
		f.decider("other", two(""))
		f.await("y", schemas.EventActivityScheduled)
		if took := time.Since(died); took > soon {
			t.Errorf("it took %v", took)
		}
		if types := f.types("y"); slices.Contains(types, "DeciderTimedOut") {
			t.Errorf("history %v", types)
		}
	})
}

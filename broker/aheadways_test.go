package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// What the worker refuses, or cannot hear any more, is for anyone, at once.
func TestAheadTaskIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		gone, idle bool // the player has gone; another worker is idle
	}{
		"busy, another is idle":    {idle: true},
		"busy, nobody is idle":     {},
		"gone, another is idle":    {gone: true, idle: true},
		"gone, and nobody is idle": {gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				p := f.plays("w1", steps(2))
				f.start(startO)
				if c.gone { // after its first decision
					f.await("o", schemas.EventActivityScheduled)
					p.leave()
					f.decider("order", two(""))
				}
				var k *task
				var offers <-chan *nats.Msg
				if c.idle {
					offers = f.idle()
				}
				f.quick()
				began := time.Now()
				var token string
				if !c.gone {
					g := p.foresees()
					token = g.task.Ahead.Task.Token
					g.refuse()
					defer func() { // what it decides after all counts for nothing
						if g.hand(g.success()) {
							t.Error("the outcome of a task that was refused was taken")
						}
					}()
				}
				if c.idle {
					k = f.opened(<-offers)
				} else {
					k = f.pull()
				}
				if took := time.Since(began); took > 100*time.Millisecond || k.NotIdempotent || token != "" && k.Token != token {
					t.Errorf("got task %s after %v, ask first: %t, want %s at once", k.Token, took, k.NotIdempotent, token)
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

// A worker without room is left alone for a moment.
func TestWorkerWithoutQuotaIsLeftAlone(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		p := f.plays("w1", steps(3))
		offers := f.idle()
		f.start(startO)
		f.start(`{"workflowId":"p","type":"order","run":"r2"}`)
		f.quick()
		f.quick()
		first, second := p.foresees(), p.foresees()
		first.refuse()
		k1 := f.opened(<-offers)
		if k1.Token != first.task.Ahead.Task.Token {
			t.Fatalf("got task %s, want %s", k1.Token, first.task.Ahead.Task.Token)
		}
		if !second.hand(second.success()) { // the next task after it comes within the moment
			t.Fatal("the outcome was not taken")
		}
		f.success(f.opened(<-offers), time.Millisecond)
		time.Sleep(3 * time.Millisecond)
		f.success(k1, time.Millisecond)
		if g := p.foresees(); !g.hand(g.success()) {
			t.Fatal("the last outcome was not taken")
		}
		f.completes("o")
		f.completes("p")
	})
}

// Nobody is trusted with a decision by a token of another offer, of a former owner, or by what can be guessed from one.
func TestTokenOfAnotherOffer(t *testing.T) {
	t.Run("of another run", func(t *testing.T) {
		virtually(t, 1, func(t *testing.T, f *fleet) {
			f.node("a", nil)
			p := f.plays("w1", steps(2))
			f.start(startO)
			f.start(`{"workflowId":"p","type":"order","run":"r2"}`)
			f.quick()
			f.quick()
			a, b := p.foresees(), p.foresees()
			secret := func(g *readAheadState) string { return g.task.Token[strings.LastIndexByte(g.task.Token, '.')+1:] }
			if s, u := secret(a), secret(b); len(s) < 12 || s[:6] == u[:6] || s[len(s)-6:] == u[len(u)-6:] {
				t.Errorf("tokens %s and %s tell of each other", a.task.Token, b.task.Token)
			}
			ra, rb := a.success(), b.success()
			ra.Ahead.Token, rb.Ahead.Token = rb.Ahead.Token, ra.Ahead.Token
			if !a.hand(ra) || !b.hand(rb) {
				t.Fatal("an outcome was not taken")
			}
			f.completes("o")
			f.completes("p")
			p.wantAsks(began, began, succeeded, succeeded, succeeded, succeeded)
		})
	})
	t.Run("of a former owner", func(t *testing.T) {
		virtually(t, 1, func(t *testing.T, f *fleet) {
			g, p, a := f.foreseen(steps(2))
			a.kill()
			f.node("b", nil)
			k := f.pull() // b knows nothing of how quick the type is
			if k.Token != g.task.Ahead.Task.Token {
				t.Fatalf("got %s", k.Token)
			}
			if !g.hand(g.success()) {
				t.Fatal("the outcome was not taken")
			}
			f.completes("o")
			f.wantTypes("o", twoActivities...)
			p.wantAsks(began, succeeded, succeeded)
		})
	})
	t.Run("of an offer that is over", func(t *testing.T) {
		virtually(t, 1, func(t *testing.T, f *fleet) {
			g, p, _ := f.foreseen(steps(2))
			if k := f.pull(); !k.NotIdempotent { // a second later
				t.Error("whoever gets the message need not ask")
			}
			if !g.hand(g.success()) {
				t.Fatal("the outcome was not taken")
			}
			f.completes("o")
			p.wantAsks(began, succeeded, succeeded)
		})
	})
}

// An outcome that is repeated since its answer was lost counts once, and so does its decision. In the inbox a decision counts for
// nothing.
func TestOutcomeWithADecisionIsRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		hands    int
		inbox    bool
		ordinary bool // the decision is asked for
	}{
		"to the owner":                {hands: 3},
		"to the owner, and the inbox": {hands: 1, inbox: true},
		"to the inbox alone":          {inbox: true, ordinary: true},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				g, p, _ := f.foreseen(steps(3))
				r := g.success()
				for n := range c.hands {
					if stored := g.hand(r); stored != (n == 0) {
						t.Errorf("hand %d: stored %t", n, stored)
					}
				}
				if c.inbox {
					f.publish(g.task.Ahead.Task.Report, string(p.pack(r)))
				}
				last := p.foresees()
				if !last.hand(last.success()) {
					t.Fatal("the last outcome was not taken")
				}
				f.completes("o")
				want := [][]schemas.EventType{began, succeeded}
				if c.ordinary {
					want = append(want, succeeded)
				}
				p.wantAsks(want...)
				if dead := f.dead(); len(dead) != 0 {
					t.Errorf("dead letters %v, want none", dead)
				}
				scheduled := 0
				for _, typ := range f.types("o") {
					if typ == "ActivityScheduled" {
						scheduled++
					}
				}
				if scheduled != 3 {
					t.Errorf("%d activities, want 3: %v", scheduled, f.types("o"))
				}
			})
		})
	}
}

// Whatever a decider may decide it may decide ahead.
func TestKindsOfDecisionsAhead(t *testing.T) {
	for name, c := range map[string]struct {
		decisions []schemas.Decision
		want      []string // after the DeciderCompleted of the decision
		ends      string
	}{
		"nothing":         {nil, nil, ""},
		"the end":         {[]schemas.Decision{decider.Complete(1)}, []string{"WorkflowSuccess"}, "completed"},
		"a failure":       {[]schemas.Decision{decider.Fail("no", nil)}, []string{"WorkflowFailed"}, "failed"},
		"another run":     {[]schemas.Decision{decider.ContinueAsNew(1)}, []string{"WorkflowContinuedAsNew"}, ""},
		"marker and end":  {[]schemas.Decision{decider.Marker("m", 1), decider.Complete(1)}, []string{"Marker", "WorkflowSuccess"}, "completed"},
		"many activities": {[]schemas.Decision{decider.Schedule("x", "work", 1, decider.List("main")), decider.Schedule("y", "work", 1, decider.List("main"))}, []string{"ActivityScheduled", "ActivityScheduled"}, ""},
		"all sorts": {[]schemas.Decision{
			decider.Marker("m", 1), decider.Timer("t", time.Hour), decider.StartChild("kid", "kid", nil), decider.Schedule("x", "work", 1, decider.List("main")),
		}, []string{"Marker", "TimerScheduled", "ChildScheduled", "ActivityScheduled"}, ""},
		"what cannot be": {[]schemas.Decision{decider.Schedule("x", "", nil, decider.List("main"))}, []string{"ActivityScheduleFailed", "DeciderScheduled"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				g, p, _ := f.foreseen(func(t *schemas.DecisionTask, done int) []schemas.Decision {
					if done == 2 && has(t, schemas.EventActivitySuccess) {
						return c.decisions
					}
					return steps(2)(t, done)
				})
				if !g.hand(g.success()) {
					t.Fatal("the outcome was not taken")
				}
				if c.ends != "" {
					if got := f.result("o"); got != c.ends {
						t.Errorf("status %s, want %s", got, c.ends)
					}
				}
				var got []string
				for _, e := range f.eventsOf("o", "r1")[15:] {
					got = append(got, string(e.Type()))
				}
				want := append([]string{"DeciderCompleted"}, c.want...)
				if diff := cmp.Diff(want, got[:min(len(want), len(got))]); diff != "" {
					t.Errorf("decided (-want +got):\n%s", diff)
				}
				if asks := p.asks(); len(asks) < 2 || len(asks) > 3 || name != "what cannot be" && name != "another run" && len(asks) != 2 {
					t.Errorf("asked for %v", asks)
				}
				if name == "another run" {
					for n := 0; len(f.runsOf("o")) < 2; n++ {
						if n == 100 {
							t.Fatal("there is no other run")
						}
						time.Sleep(100 * time.Millisecond)
					}
				}
			})
		})
	}
}

// A reply that the broker cannot use is the decider's failure, as in the ordinary way, and it is asked again.
func TestUnusableDecisionAhead(t *testing.T) {
	for name, change := range map[string]func(*schemas.DecisionReply){
		"an unknown decision": func(d *schemas.DecisionReply) { d.Decisions = []schemas.Decision{{}} },
		"another token":       func(d *schemas.DecisionReply) { d.Token = "r1.15.1.3" },
		"closes, and more": func(d *schemas.DecisionReply) {
			d.Decisions = []schemas.Decision{decider.Complete(1), decider.Marker("m", 1)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				g, p, _ := f.foreseen(steps(2))
				r := g.success()
				g.answer(r, change)
				if !g.hand(r) {
					t.Fatal("the outcome was not taken")
				}
				f.completes("o")
				f.wantTypes("o", append(twoActivities[:15:15], "DeciderFailed", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")...)
				if n := len(p.asks()); n != 3 {
					t.Errorf("the decider was asked %d times, want 3", n)
				}
			})
		})
	}
}

// A sticky worker that does not answer in time is not asked again, whether it hangs or is dead while somebody else hears its
// subject.
func TestStickyWorkerThatIsOverdue(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		p := f.plays("w1", steps(2))
		f.start(startO)
		f.await("o", schemas.EventActivityScheduled)
		p.leave()
		heard, err := f.nc.SubscribeSync(ns.DecideSticky("order", "w1"))
		if err != nil {
			t.Fatal(err)
		}
		f.decider("order", two(""))
		f.quick()
		f.await("o", schemas.EventDeciderTimedOut)
		k := f.pull()
		k.success()
		f.completes("o")
		if n, _, err := heard.Pending(); err != nil || n != 1 {
			t.Errorf("it was asked %d times (%v), want once", n, err)
		}
		if got := f.count("o", schemas.EventDeciderTimedOut); got != 1 {
			t.Errorf("%d decisions have timed out, want one", got)
		}
	})
}

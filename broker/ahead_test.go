package broker_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// The windows of ordinary tasks.
var (
	began     = []schemas.EventType{schemas.EventWorkflowStarted, schemas.EventDeciderScheduled, schemas.EventDeciderStarted}
	succeeded = []schemas.EventType{
		schemas.EventDeciderCompleted, schemas.EventActivityScheduled, schemas.EventActivityStarted, schemas.EventActivitySuccess,
		schemas.EventDeciderScheduled, schemas.EventDeciderStarted,
	}
)

// wantAsks checks for which windows the player was asked in the ordinary way.
func (p *player) wantAsks(want ...[]schemas.EventType) {
	p.f.t.Helper()
	if diff := cmp.Diff(want, p.asks()); diff != "" {
		p.f.t.Errorf("windows of decision tasks (-want +got):\n%s", diff)
	}
}

// The history becomes what the decision rests upon, with its times, and outcome and decision are one record.
func TestDecisionComesWithItsOutcome(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		g, p, _ := f.foreseen(steps(3))
		if got := g.task.Ahead.Task; got.ActivityID != "a2" || got.NotIdempotent || len(got.Input) != 0 {
			t.Fatalf("got %+v", got)
		}
		time.Sleep(3 * time.Millisecond)
		r := g.success()
		time.Sleep(2 * time.Millisecond) // on its way
		if !g.hand(r) {
			t.Fatal("the outcome was not taken")
		}
		next := p.foresees()
		last := next.success()
		if !next.hand(last) {
			t.Fatal("the last outcome was not taken")
		}
		f.completes("o")
		f.wantTypes("o", append(twoActivities[:16:16], append([]string{"ActivityScheduled"}, twoActivities[11:]...)...)...)
		all := f.events("o")
		for _, c := range []struct {
			g *readAheadState
			r *schemas.Report
		}{{g, r}, {next, last}} {
			want := c.g.assumed(c.r)
			if diff := cmp.Diff(want, all[want[0].ID-1:want[len(want)-1].ID]); diff != "" {
				t.Errorf("what was decided upon (-assumed +history):\n%s", diff)
			}
		}
		records := f.records(0)
		if n := len(records); n != 4 || len(records[2].Events) != 6 || len(records[3].Events) != 6 {
			t.Errorf("got %d records, the last of %d and %d events, want 4 with six in each of the last", n, len(records[2].Events), len(records[3].Events))
		}
		p.wantAsks(began, succeeded)
		if n := f.stored(); n != 1 {
			t.Errorf("got %d messages of tasks, want that of the first alone", n)
		}
	})
}

// Whatever comes between the offer and the outcome: the decision is dropped, the outcome counts, and the decider is asked about
// what has really happened.
func TestSomethingComesBetween(t *testing.T) {
	signal := func(f *fleet) { f.api("signal", `{"workflowId":"o","name":"s"}`) }
	for name, c := range map[string]struct {
		happens func(f *fleet)
		has     schemas.EventType // in the history, before the success
		times   int               // if not once
		ends    string
	}{
		"a signal":         {happens: signal, has: schemas.EventSignal},
		"two signals":      {happens: func(f *fleet) { signal(f); signal(f) }, has: schemas.EventSignal, times: 2},
		"a published one":  {happens: func(f *fleet) { f.publish(ns.Signal("o", "s"), `1`) }, has: schemas.EventSignal},
		"a cancel request": {happens: func(f *fleet) { f.api("cancel", `{"workflowId":"o","requestId":"c"}`) }, has: schemas.EventWorkflowCancelRequested},
		"a pause": {happens: func(f *fleet) {
			f.api("pause", `{"workflowId":"o","requestId":"p"}`)
			go func() {
				time.Sleep(5 * time.Second)
				f.api("resume", `{"workflowId":"o","requestId":"q"}`)
			}()
		}, has: schemas.EventWorkflowPaused},
		"a pause that is over": {happens: func(f *fleet) {
			f.api("pause", `{"workflowId":"o","requestId":"p"}`)
			f.api("resume", `{"workflowId":"o","requestId":"q"}`)
		}, has: schemas.EventWorkflowResumed},
		"an announcement": {happens: func(f *fleet) {
			f.publish(ns.ActOutcome(0, "o", "main"), `{"token":"`+f.token()+`","kind":"started","identity":"w1","nonce":"x","offered":true,"elapsed":"50ms"}`)
		}, has: schemas.EventActivityStarted, times: 2},
		"a timer": {happens: func(f *fleet) { time.Sleep(300 * time.Millisecond) }, has: schemas.EventTimerExpired},
		"an end":  {happens: func(f *fleet) { f.api("terminate", `{"workflowId":"o","reason":"enough"}`) }, has: schemas.EventWorkflowTerminated, ends: "terminated"},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				g, p, _ := f.foreseen(func(t *schemas.DecisionTask, done int) []schemas.Decision {
					d := steps(2)(t, done)
					if done == 1 && len(d) > 0 && name == "a timer" {
						d = append(d, decider.Timer("t", 200*time.Millisecond))
					}
					return d
				})
				before := len(p.asks())
				c.happens(f)
				f.awaitTimes("o", c.has, max(c.times, 1)) // it may be on its way
				r := g.success()
				time.Sleep(5 * time.Millisecond) // on its way
				stored := g.hand(r)
				if stored != (c.ends == "") {
					t.Errorf("the outcome was stored: %t", stored)
				}
				if c.ends != "" {
					if got := f.result("o"); got != c.ends {
						t.Errorf("status %s, want %s", got, c.ends)
					}
					return
				}
				f.completes("o")
				if n := len(p.asks()); n <= before {
					t.Errorf("the decider was asked %d times, want once more", n)
				}
				seen, done := false, 0
				for _, e := range f.events("o") {
					seen = seen || e.Type() == c.has
					if e.Type() != schemas.EventActivitySuccess {
						continue
					}
					if done++; done == 2 && !seen {
						t.Errorf("the success is before %s", c.has)
					}
					if done == 2 && e.Time <= r.Ahead.At {
						t.Errorf("the success is at %v, the time of the decision that was dropped", e.Time)
					}
				}
				if !seen || done != 2 {
					t.Errorf("history %v, want %s and two successes", f.types("o"), c.has)
				}
				if got := f.dead(); len(got) != 0 {
					t.Errorf("dead letters %v, want none", got)
				}
			})
		})
	}
}

// token is that of the activity of workflow o that was scheduled last.
func (f *fleet) token() (token string) {
	f.t.Helper()
	for _, e := range f.events("o") {
		if e.Type() == schemas.EventActivityScheduled {
			token = execution.Token("r1", e.ID, 1)
		}
	}
	return token
}

// What does not belong to the offer, or is no decision, is dropped without a trace.
func TestDecisionAheadIsDropped(t *testing.T) {
	for name, change := range map[string]func(g *readAheadState, r *schemas.Report){
		"a made up token":     func(_ *readAheadState, r *schemas.Report) { r.Ahead.Token += "x" },
		"an ordinary token":   func(g *readAheadState, r *schemas.Report) { r.Ahead.Token = "r1.15.1.3" },
		"no token":            func(_ *readAheadState, r *schemas.Report) { r.Ahead.Token = "" },
		"nothing at all":      func(_ *readAheadState, r *schemas.Report) { r.Ahead = &schemas.AheadDecision{} },
		"no reply":            func(_ *readAheadState, r *schemas.Report) { r.Ahead.Reply = nil },
		"an unreadable reply": func(_ *readAheadState, r *schemas.Report) { r.Ahead.Reply = []byte("\xdd\xff\xff\xff\xff") },
		"a failure": func(g *readAheadState, r *schemas.Report) {
			g.answer(r, func(d *schemas.DecisionReply) { d.Error = &schemas.DecisionError{Reason: "no"} })
		},
		"before the last event":    func(g *readAheadState, r *schemas.Report) { r.Ahead.At = g.task.Events[len(g.task.Events)-1].Time - 1 },
		"after now":                func(_ *readAheadState, r *schemas.Report) { r.Ahead.At = schemas.At(time.Now()) + 1 },
		"an hour ahead":            func(_ *readAheadState, r *schemas.Report) { r.Ahead.At = r.Ahead.At.Add(schemas.Seconds(3600)) },
		"before all time":          func(_ *readAheadState, r *schemas.Report) { r.Ahead.At = math.MinInt64 },
		"after all time":           func(_ *readAheadState, r *schemas.Report) { r.Ahead.At = math.MaxInt64 },
		"no decision at all, none": func(_ *readAheadState, r *schemas.Report) { r.Ahead = nil },
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				g, p, _ := f.foreseen(steps(2))
				r := g.success()
				change(g, r)
				if !g.hand(r) {
					t.Fatal("the outcome was not taken")
				}
				f.completes("o")
				f.wantTypes("o", twoActivities...)
				p.wantAsks(began, succeeded, succeeded)
				if got := f.dead(); len(got) != 0 {
					t.Errorf("dead letters %v, want none", got)
				}
			})
		})
	}
}

// answer changes the reply in a report.
func (g *readAheadState) answer(r *schemas.Report, change func(*schemas.DecisionReply)) {
	d := &schemas.DecisionReply{}
	if err := schemas.Unmarshal(r.Ahead.Reply, d); err != nil {
		g.p.f.t.Fatal(err)
	}
	change(d)
	r.Ahead.Reply = g.p.pack(d)
}

// From the last event to now: the bounds belong to it, and all that follows happens then.
func TestTimeOfADecisionAhead(t *testing.T) {
	for name, late := range map[string]bool{"at the last event": false, "now": true} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				g, p, _ := f.foreseen(steps(2))
				r := g.success()
				time.Sleep(10 * time.Millisecond)
				at := g.task.Events[len(g.task.Events)-1].Time
				if late {
					at = r.Ahead.At.Add(schemas.Duration(10 * time.Millisecond)) // in virtual time nothing else passes
				}
				if r.Ahead.At = at; !g.hand(r) {
					t.Fatal("the outcome was not taken")
				}
				f.completes("o")
				p.wantAsks(began, succeeded)
				for _, e := range f.events("o")[12:] {
					if e.Time != at {
						t.Errorf("event %d, %s, is at %d, want %d", e.ID, e.Type(), e.Time, at)
					}
				}
			})
		})
	}
}

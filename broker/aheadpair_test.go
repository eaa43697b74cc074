package broker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// pair is a process with a decider worker and an activity worker on one connection. Its workflows do activities one after the
// other, and what their deciders see is kept.
type pair struct {
	f     *fleet
	wire  *cutwire.Wire
	steps int
	took  time.Duration // an activity

	deciders, activities func() error // ends one of the two

	done atomic.Int64 // activities
}

// pairs starts such a process. It ends with the test.
func (f *fleet) pairs(name string, n int, judge func(string, []byte) cutwire.Verdict) *pair {
	f.t.Helper()
	p := &pair{f: f, wire: cutwire.New(f), steps: n}
	if judge != nil {
		p.wire.Judge(judge)
	}
	conn, err := natsconn.Dial(context.Background(), natsconn.Options{InProcess: p.wire, Name: name, Logger: f.log})
	if err != nil {
		f.t.Fatal(err)
	}
	d := decider.New(conn, &decider.Options{Identity: name, Logger: f.log, DrainTimeout: time.Second, Observer: p.observe})
	d.Register("order", decider.Func(p.decide))
	a := activity.New(conn, &activity.Options{Identity: name, Logger: f.log, Lists: []string{"main"}, DrainTimeout: time.Second})
	activity.Register(a, "work", func(ctx context.Context, in int) (int, error) {
		p.done.Add(1)
		time.Sleep(p.took)
		return in + 1, nil
	})
	p.deciders, p.activities = f.employs(d.Run), f.employs(a.Run)
	f.t.Cleanup(func() {
		_ = p.deciders() // a test that cares looks itself
		_ = p.activities()
		conn.Close()
	})
	return p
}

// runs runs a worker until the function that it returns is called.
func (f *fleet) employs(run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	ended := make(chan struct{})
	go func() { err = run(ctx); close(ended) }()
	return func() error { cancel(); <-ended; return err }
}

func (p *pair) observe(o decider.Observation) {
	if o.Outcome == decider.OutcomeDecided && o.Sticky && o.Waited < 0 {
		p.f.t.Errorf("a decision has waited for %v", o.Waited)
	}
}

// decide looks at the whole history, as most deciders do, and says in its context what it has seen.
func (p *pair) decide(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	var all []schemas.Event
	for e, err := range t.History(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	if at := all[len(all)-1].Time; !t.StartedAt().Equal(at.Time()) {
		p.f.t.Errorf("decision %d is said to have started at %v, and its event is of %v",
			t.StartedID(), t.StartedAt(), at)
	}
	sum, err := sumOf(all)
	if err != nil {
		return nil, err
	}
	t.SetContext(sum)
	v, err := t.View(ctx)
	if err != nil || len(v.Open()) > 0 {
		return nil, err
	}
	n := v.Counts().Closed
	if n < p.steps {
		return []schemas.Decision{decider.Schedule(fmt.Sprint("a", n+1), "work", n, decider.List("main"))}, nil
	}
	return []schemas.Decision{decider.Complete(n)}, nil
}

// sumOf tells events apart, and their times. The identity of who decides is known after the decision only.
func sumOf(events []schemas.Event) (schemas.Payload, error) {
	h := sha256.New()
	for _, e := range events {
		if a, ok := e.Attributes.(*schemas.DeciderStarted); ok {
			bare := *a
			bare.Identity = ""
			e.Attributes = &bare
		}
		body, err := schemas.MarshalJSON(e)
		if err != nil {
			return nil, err
		}
		h.Write(body)
	}
	return schemas.Text("sum " + hex.EncodeToString(h.Sum(nil)[:8])), nil
}

// decisions tells how often the owner asked for decisions, and how many came with outcomes, by the messages of its wire.
type decisions struct{ asked, offered atomic.Int64 }

func (d *decisions) judge(subj string, message []byte) cutwire.Verdict {
	var t schemas.DecisionTask
	if strings.HasPrefix(subj, "drover.default.decide.") && schemas.Unmarshal(bodyOf(message), &t) == nil {
		if t.Ahead != nil {
			d.offered.Add(1)
		} else {
			d.asked.Add(1)
		}
	}
	return cutwire.Pass
}

// bodyOf is what a message has after its headers.
func bodyOf(message []byte) []byte {
	if _, body, found := bytes.Cut(message, []byte("\r\n\r\n")); found {
		return body
	}
	return message
}

// wantSeen checks that every decision in a history was made upon what stands there, to the instant.
func (f *fleet) wantSeen(id string) {
	f.t.Helper()
	history := f.events(id)
	for _, e := range history {
		if a, ok := e.Attributes.(*schemas.DeciderCompleted); ok {
			want, err := sumOf(history[:a.StartedEventID])
			if err != nil {
				f.t.Fatal(err)
			}
			if !bytes.Equal(a.ExecutionContext, want) {
				f.t.Errorf("%s: decision %d was made upon %s by %s, and the history has %s", id, a.StartedEventID, a.ExecutionContext, a.Identity, want)
			}
		}
	}
}

// Workers that run in one process decide ahead all but the first activity, and see what the history will hold.
func TestPairDecidesAhead(t *testing.T) { // P-11
	for name, took := range map[string]time.Duration{"at once": 0, "in a while": 7 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				var d decisions
				f.node("a", d.judge)
				p := f.pairs("w1", 8, nil)
				p.took = took
				time.Sleep(time.Second)
				f.start(startO)
				f.completes("o")
				f.wantSeen("o")
				if asked, offered, done := d.asked.Load(), d.offered.Load(), p.done.Load(); asked != 2 || offered != 7 || done != 8 {
					t.Errorf("the decider was asked %d times, and %d of %d activities came with their decisions: want 2 and 7 of 8", asked, offered, done)
				}
				if n := len(f.records(0)); n != 9 {
					t.Errorf("%d records, want one for each outcome and the start", n)
				}
			})
		})
	}
}

// Many runs, and signals among them at any moment: what was decided ahead upon something else is not in any history.
func TestPairAmongSignals(t *testing.T) { // P-11
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var d decisions
		f.node("a", d.judge)
		p := f.pairs("w1", 6, nil)
		p.took = 2 * time.Millisecond
		time.Sleep(time.Second)
		const runs = 12
		f.starts(runs)
		for n := range 60 {
			f.publish(ns.Signal(fmt.Sprint("w", n%runs), "s"), `1`)
			time.Sleep(500 * time.Microsecond)
		}
		for n := range runs {
			id := fmt.Sprint("w", n)
			f.completes(id)
			f.wantSeen(id)
			if got := f.count(id, schemas.EventActivityScheduled); got != 6 {
				t.Errorf("%s has %d activities, want 6", id, got)
			}
		}
		if d.offered.Load() == 0 {
			t.Error("nothing was decided ahead")
		}
	})
}

// Either of the two workers may end while the other goes on: nothing is lost or done twice, and what was in hand is told.
func TestOneOfAPairEnds(t *testing.T) { // S2-1
	for _, who := range []string{"deciders", "activities", "deciders, then activities", "activities, then deciders"} {
		t.Run(who, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				first := f.pairs("w1", 10, nil)
				first.took = 3 * time.Millisecond
				time.Sleep(time.Second)
				const runs = 10
				f.starts(runs)
				second := f.pairs("w2", 10, nil)
				second.took = 3 * time.Millisecond
				time.Sleep(8 * time.Millisecond)
				began := time.Now()
				for _, stop := range map[string][]func() error{
					"deciders": {first.deciders}, "activities": {first.activities},
					"deciders, then activities": {first.deciders, first.activities}, "activities, then deciders": {first.activities, first.deciders},
				}[who] {
					if err := stop(); err != nil {
						t.Error(err)
					}
				}
				if took := time.Since(began); took > 500*time.Millisecond {
					t.Errorf("the drain took %v", took)
				}
				for n := range runs {
					id := fmt.Sprint("w", n)
					f.completes(id)
					if got := f.count(id, schemas.EventActivityStarted); got != 10 {
						t.Errorf("%s: %d attempts, want 10", id, got)
					}
				}
				if took := time.Since(began); took > time.Minute { // a question on its way to who stops listening is asked again
					t.Errorf("it took %v until all was done", took)
				}
				if n := first.done.Load() + second.done.Load(); n != 10*runs {
					t.Errorf("%d activities were done, want %d", n, 10*runs)
				}
				if got := f.dead(); len(got) != 0 {
					t.Errorf("dead letters %v", got)
				}
			})
		})
	}
}

// An owner that leaves as planned while decisions are on their way with outcomes: they are dropped or counted, and all comes to its end.
func TestOwnerLeavesAPair(t *testing.T) { // S2-1
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		p := f.pairs("w1", 20, nil)
		p.took = 3 * time.Millisecond
		time.Sleep(time.Second)
		const runs = 10
		f.starts(runs)
		f.node("b", nil)
		time.Sleep(10 * time.Millisecond)
		a.stop()
		for n := range runs {
			id := fmt.Sprint("w", n)
			f.completes(id)
			f.wantSeen(id)
			if got := f.count(id, schemas.EventActivityScheduled); got != 20 {
				t.Errorf("%s has %d activities, want 20", id, got)
			}
		}
		for _, l := range f.letters() {
			if l.Reason != "closed-activity" && l.Reason != "stale-token" { // an outcome that was told twice
				t.Errorf("dead letter %s: %s", l.Reason, l.Details)
			}
		}
	})
}

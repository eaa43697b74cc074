package execution

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// week plays a chain of runs as its owner does, with one decider that continues whenever it is asked to.
type week struct {
	t       *testing.T
	d       *rand.Rand
	c       Config
	now     schemas.Timestamp
	s       *State
	events  []schemas.Event // of the run
	sent    int
	read    []string // the signals that deciders have seen, copies in place of what was not read
	runs    int
	longest int64
}

func (w *week) step(m Message) {
	events, _ := w.s.Step(&w.c, m, w.now)
	w.events = append(w.events, events...)
	if w.s.Status == schemas.StatusContinuedAsNew {
		w.next()
	}
}

// next begins the run that follows.
func (w *week) next() {
	q, unread := w.s.Continuation(), w.s.Unread(w.events)
	w.runs, w.longest = w.runs+1, max(w.longest, w.s.LastID)
	w.s, w.events = New(q.WorkflowID, q.Run), nil
	w.step(Start{Request: q})
	for _, e := range unread {
		w.step(Copied{EventID: e.ID, Signal: e.Attributes.(*schemas.Signal)})
	}
}

func (w *week) signal() {
	w.step(Signal{Name: "s", Input: schemas.Text(fmt.Sprint(w.sent)), RequestID: fmt.Sprint(w.sent)})
	w.sent++
}

// decide lets the decider take its task and answer, while signals come in now and then.
func (w *week) decide() {
	for {
		wanted, ok := w.s.WantsDecider(&w.c)
		if !ok {
			return
		}
		w.step(Taken{})
		reply := &schemas.DecisionReply{}
		if len(w.s.ContinueReasons()) > 0 {
			reply.Decisions = []schemas.Decision{schemas.Decide(&schemas.ContinueAsNew{})}
		}
		var window []string
		for _, e := range w.events {
			if a, is := e.Attributes.(*schemas.Signal); is && e.ID > w.s.Decision.Previous && e.ID < wanted.StartedID {
				window = append(window, string(a.Input))
			}
		}
		for w.d.IntN(3) == 0 {
			w.signal()
		}
		w.now += schemas.Timestamp(20 * time.Millisecond)
		w.read = append(w.read, window...)
		w.step(Reply{Reply: reply})
	}
}

// S2-6, S2-9, P-4. A week of hourly continuations while signals come in, many of them while a decider is at work: deciders see each
// of them once and in its order, and no history grows beyond what comes in an hour.
func TestAWeekOfContinuations(t *testing.T) {
	for seed := range uint64(5) {
		w := &week{t: t, d: rand.New(rand.NewPCG(seed, 3)), c: Config{}.Defaults(), s: New("order", "run.1"), now: 1_767_000_000_000_000_000}
		w.step(Start{Request: &schemas.StartRequest{
			WorkflowID: "order", Run: "run.1", Type: "order", StartMode: schemas.ModeAutoStart,
			Continuation: &schemas.ContinuationPolicy{After: schemas.Duration(time.Hour)},
		}})
		for end := w.now.Add(schemas.Duration(7 * 24 * time.Hour)); w.now < end; {
			w.decide()
			next := w.now.Add(schemas.Duration(w.d.Int64N(int64(5 * time.Minute))))
			if due := w.s.NextDue(&w.c); due != 0 && due <= next {
				w.now = max(w.now, due)
				w.step(AlarmFired{})
				continue
			}
			w.now = next
			w.signal()
		}
		w.decide()
		for i, s := range w.read {
			if s != fmt.Sprint(i) {
				t.Fatalf("seed %d: signal %s is number %d of those that deciders have seen", seed, s, i)
			}
		}
		if len(w.read) != w.sent {
			t.Fatalf("seed %d: deciders have seen %d signals, want %d", seed, len(w.read), w.sent)
		}
		if w.runs < 160 || w.runs > 168 || w.longest > 400 || w.s.Start.Mode() != schemas.ModeContinuation {
			t.Errorf("seed %d: %d runs, the longest of %d events, the last begun by %q", seed, w.runs, w.longest, w.s.Start.Mode())
		}
	}
}

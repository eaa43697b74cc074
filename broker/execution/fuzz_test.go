package execution

import (
	"math/rand/v2"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// byteDice roll what is in the bytes, and only zeros after their end.
type byteDice struct{ b []byte }

func (d *byteDice) roll(n int) int {
	if len(d.b) == 0 {
		return 0
	}
	v := int(d.b[0])
	d.b = d.b[1:]
	return v % n
}

// FuzzStep plays the game of the property tests with bytes for dice.
func FuzzStep(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 30 {
		b := make([]byte, 40*n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 2048 {
			return
		}
		d := &byteDice{b}
		g := newGame(d)
		err := g.start()
		for err == nil && len(d.b) > 0 && !g.over() {
			err = g.turn()
		}
		if err == nil {
			err = g.again()
		}
		if err != nil {
			t.Fatalf("%v\nhistory:\n%s", err, g.history())
		}
	})
}

// FuzzToken: a token that is believed is one that was given.
func FuzzToken(f *testing.F) {
	for _, s := range []string{"", "run.5.1", "run.1.5.1", "..", "run.05.1", "run.+5.1", "run.-5.-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		run, id, attempt, err := ParseToken(token)
		if err != nil {
			return
		}
		if again, id2, n, err := ParseToken(Token(run, id, attempt)); err != nil || again != run || id2 != id || n != attempt {
			t.Fatalf("%q: got %q %d %d, and then %q %d %d, %v", token, run, id, attempt, again, id2, n, err)
		}
	})
}

// FuzzRestore: what is restored can be worked with, whatever the bytes say.
func FuzzRestore(f *testing.F) {
	w := New("order", "run.1")
	c := Config{}.Defaults()
	w.Step(&c, Start{Request: &schemas.StartRequest{WorkflowID: "order", Run: "run.1", ActivityDefaults: &schemas.ActivityDefaults{List: "main"}}}, 1)
	w.Step(&c, Taken{}, 2)
	w.Step(&c, Reply{Reply: &schemas.DecisionReply{Decisions: []schemas.Decision{schemas.Decide(activity("A")), schemas.Decide(timer("T", 5))}}}, 3)
	b, err := w.Snapshot()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"start":{},"lastId":7,"activities":{"5":{"scheduled":{},"notBefore":"2026-01-02T03:04:05Z"}},"timers":{"T":{}}}`))
	f.Add([]byte(`{"start":{},"lastId":9,"children":{"7":{"scheduledId":7,"scheduled":{}}},"externals":{"8":{"scheduledId":8,"cancel":{}},"9":{"signal":{}}}}`))
	f.Fuzz(func(_ *testing.T, b []byte) {
		s, err := Restore(b)
		if err != nil {
			return
		}
		for _, m := range []Message{
			AlarmFired{},
			Taken{},
			Reply{Reply: &schemas.DecisionReply{}},
			Signal{Name: "x"},
			Child{Report: &schemas.ChildReport{ParentRun: s.Run, ScheduledEventID: 7, Status: schemas.StatusOpen}},
			External{Answer: &schemas.ExternalAnswer{SourceRun: s.Run, ScheduledEventID: 8}},
			Cancel{Request: &schemas.ExecutionRequest{}},
			Terminate{Request: &schemas.ExecutionRequest{}},
		} {
			s.Step(&c, m, s.LastTime)
			s.AnswerAgain(m)
		}
		s.Continuation()
		s.NextDue(&c)
		s.WantsDecider(&c)
		s.OpenEffects(s.LastTime)
		s.Rebase(1, s.LastTime)
	})
}

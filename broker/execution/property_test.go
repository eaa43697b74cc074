package execution

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/schemas"
)

var errSpins = errors.New("something is still due after two rings at the same instant: an alarm would spin")

// rapidDice make a game that rapid can shrink.
type rapidDice struct{ t *rapid.T }

func (d rapidDice) roll(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "roll") }

// TestGame plays random messages, valid and invalid, in random order and at random times. See game for what is looked at
// after each of them: (a) the checker, the model and the effects find nothing wrong, (b) the history tells the whole state,
// (c) the same input gives the same output, (d) a snapshot is as good as what it was taken of, (e) alarms cannot spin.
func TestGame(t *testing.T) { // S1-5, S1-27 … S1-30, S1-34 … S1-39, S1-42
	rapid.Check(t, func(t *rapid.T) {
		g := newGame(rapidDice{t})
		fail := func(err error) {
			if err != nil {
				t.Fatalf("%v\nhistory:\n%s", err, g.history())
			}
		}
		fail(g.start())
		for turns := rapid.IntRange(1, 100).Draw(t, "turns"); turns > 0 && !g.over(); turns-- {
			fail(g.turn())
		}
		fail(g.again())
	})
}

func (g *game) history() string { return (&world{events: g.events}).history() }

// Any prefix of a history can be folded, and what is folded can be carried on with: that is what a new owner does, and
// the records it finds may end anywhere between two steps.
func TestEveryPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGame(rapidDice{t})
		g.lazy = true
		err := g.start()
		for range rapid.IntRange(1, 40).Draw(t, "turns") {
			if err == nil {
				err = g.turn()
			}
		}
		if err != nil {
			t.Fatalf("%v\nhistory:\n%s", err, g.history())
		}
		for n := range g.events {
			s := fold(g.lived, g.events[:n])
			if s.LastID != int64(n) {
				t.Fatalf("%d events folded give event %d", n, s.LastID)
			}
			s.Step(&g.c, AlarmFired{}, g.now)
			s.Step(&g.c, Taken{}, g.now)
			s.Step(&g.c, Reply{Reply: &schemas.DecisionReply{}}, g.now)
			s.Rebase(int64(n), g.now)
			if _, err := s.Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

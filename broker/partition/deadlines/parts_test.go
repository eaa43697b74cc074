package deadlines

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// Runs come in their order when their time has come; one that has left does not, and may come back.
func TestLine(t *testing.T) {
	var l Line[string]
	at := func(ms int) time.Time { return time.Unix(0, int64(ms)*int64(time.Millisecond)) }
	next := func(ms int) (all []string) {
		for r, ok := l.Next(at(ms)); ok; r, ok = l.Next(at(ms)) {
			all = append(all, r)
		}
		return all
	}
	_, alone := l.Enter("a", at(1000))
	b, second := l.Enter("b", at(1000))
	if !alone || second {
		t.Errorf("alone: %v, then %v; want the first only", alone, second)
	}
	l.Enter("c", at(1300))
	l.Leave(b)
	l.Enter("b", at(1600))
	if got := next(999); got != nil {
		t.Errorf("too early: %v", got)
	}
	if got := next(1300); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("got %v, want a and c", got)
	}
	if wait, ok := l.Wait(at(1300)); !ok || wait != 300*time.Millisecond {
		t.Errorf("the next wait is %v, %v; want that of b", wait, ok)
	}
	if got := next(1600); !slices.Equal(got, []string{"b"}) {
		t.Errorf("got %v, want b", got)
	}
	if _, ok := l.Wait(at(1600)); ok {
		t.Error("somebody waits in an empty line")
	}
	place, alone := l.Enter("d", at(2000))
	if place == 0 || !alone {
		t.Errorf("after an empty line the place is %d, alone: %v", place, alone)
	}
}

// Each alarm is told of once, many in one answer, and the rest is refused.
func TestBatches(t *testing.T) { // P-10
	b := newBatches()
	var answers []string
	add := func(n int) *Batch {
		return b.Add(n, func(a *schemas.RingsAnswer) { answers = append(answers, fmt.Sprintf("%d%v", a.Done, a.Refused)) })
	}
	one := add(3)
	if got := []Tell{one.Done(7), one.Done(8)}; got[0] != TellLater || got[1] != TellAnyway {
		t.Errorf("got %v, want one answer after a while", got)
	}
	b.Answer(one, false)
	b.Answer(one, false) // nothing is new
	if got := one.Done(9); got != TellNow {
		t.Errorf("the last one: got %v", got)
	}
	b.Answer(one, false)
	two, three := add(2), add(1)
	two.Done(4)
	three.Done(5)
	b.Answer(three, true)
	b.Refuse()
	slices.Sort(answers[2:])
	want := []string{"[7 8]false", "[9]false", "[4]true", "[5]true"}
	if !slices.Equal(answers, want) {
		t.Errorf("got %v, want %v", answers, want)
	}
	if b.Refuse(); len(answers) != len(want) {
		t.Error("refused twice")
	}
}

// No more deletes are on their way than may be, and each is sent once.
func TestEraser(t *testing.T) {
	var e Eraser
	for seq := range uint64(5) {
		e.Add(seq)
	}
	var sent []uint64
	for range 3 {
		for seq, ok := e.Next(2); ok; seq, ok = e.Next(2) {
			sent = append(sent, seq)
		}
		e.Done()
		e.Done()
	}
	if want := []uint64{0, 1, 2, 3, 4}; !slices.Equal(sent, want) {
		t.Errorf("sent %v, want %v", sent, want)
	}
}

// The longest unused runs go first, and what cannot be forgotten stays.
func TestUsage(t *testing.T) {
	var u Usage[string]
	uses := map[string]*Use{}
	use := func(r string) *Use { return uses[r] }
	touch := func(all ...string) {
		for _, r := range all {
			if uses[r] == nil {
				uses[r] = &Use{}
			}
			u.Touch(r, uses[r])
		}
	}
	var gone []string
	forget := func(r string) bool {
		if r == "busy" {
			return false
		}
		u.Remove(uses[r])
		delete(uses, r)
		gone = append(gone, r)
		return true
	}
	touch("busy", "a", "b", "c", "a")
	u.Evict(func() bool { return len(uses) > 2 }, forget)
	if want := []string{"b", "c"}; !slices.Equal(gone, want) {
		t.Errorf("evicted %v, want %v", gone, want)
	}
	u.Evict(func() bool { return true }, forget)
	if len(gone) != 2 {
		t.Errorf("evicted %v, and nothing was touched since", gone)
	}
	rest := Rest{Long: 2, Rested: 5, Few: 2, AtOnce: 10}
	idle := func() (got []string) {
		gone = nil
		u.Idle(rest, use, func(r string, _ bool) bool { return forget(r) })
		return gone
	}
	touch("d", "e")
	u.Tick()
	u.Tick()
	if !u.Due() {
		t.Error("nobody looks for idle runs after a tick")
	}
	touch("e")
	if got, want := idle(), []string{"a", "d"}; !slices.Equal(got, want) {
		t.Errorf("after two ticks: got %v, want %v", got, want)
	}
	if u.Due() {
		t.Error("they are looked for twice")
	}
	for range 4 {
		u.Tick()
	}
	if got := idle(); got != nil {
		t.Errorf("few runs go after four ticks: %v", got)
	}
	u.Tick()
	if got, want := idle(), []string{"e"}; !slices.Equal(got, want) {
		t.Errorf("few runs after five ticks: got %v, want %v", got, want)
	}
}

// A passivated run is taken once, and the latest of a workflow id counts.
func TestPassivated(t *testing.T) {
	p := NewPassivated()
	p.Keep("w", &Run{RunID: "r1", Sequence: 1})
	p.Keep("w", &Run{RunID: "r2", Sequence: 2})
	if !p.Has("w") || p.Has("v") || p.Len() != 1 {
		t.Errorf("w is kept: %v, v: %v, of %d", p.Has("w"), p.Has("v"), p.Len())
	}
	if k := p.Take("w"); k == nil || k.RunID != "r2" || k.Sequence != 2 {
		t.Errorf("got %+v, want r2", k)
	}
	if k := p.Take("w"); k != nil {
		t.Errorf("taken twice: %+v", k)
	}
}

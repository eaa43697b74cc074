package cache_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover/broker/partition/env/envtest"
)

// A run whose history is damaged is set aside once: who waits for it is told, and so is whoever
// asks later. It goes on once its history can be read again, by itself or when it is looked at.
func TestDamagedHistoryIsSetAside(t *testing.T) {
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		p := onServer(t, o)
		a, b, c := begins(t, o, "a"), begins(t, o, "b"), begins(t, o, "c")
		healA, healB := a.isFollowedBy("damaged"), b.isFollowedBy("damaged")
		c.signals()
		middle := c.seq
		c.signals()
		remove(t, o, middle)
		all := []string{"a", "b", "c"}
		wantAll := func(when string, want ...string) {
			for _, wid := range all {
				p.wantSaid(when, wid, want...)
			}
		}
		ask := func() {
			for _, wid := range all {
				p.ask(wid)
			}
		}
		o.Do(ask)
		time.Sleep(5 * time.Minute)
		o.Do(func() {
			wantAll("after a while", "is set aside", "broken", "dropped")
			ask()
			wantAll("asked again", "broken", "dropped")
		})

		healA()
		healB()
		o.Do(func() {
			p.LookNow(p.InMemory("b"))
			p.LookNow(p.InMemory("c"))
		})
		o.Do(func() {
			p.wantSaid("looked at", "b", b.stands(), "goes on")
			p.wantSaid("looked at, and still damaged", "c")
		})
		time.Sleep(5 * time.Minute)
		o.Do(func() {
			p.wantSaid("after a while more", "a", a.stands(), "goes on")
			p.wantSaid("still damaged", "c")
			ask()
			p.wantSaid("intact", "a", "when", "known", "kept")
			p.wantSaid("intact", "b", "when", "known", "kept")
			p.wantSaid("damaged", "c", "broken", "dropped")
		})
	})
}

// Nothing is set aside that can be read a moment later: a replica may have been late.
func TestLateHistoryIsNotSetAside(t *testing.T) {
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		p := onServer(t, o)
		a := begins(t, o, "a")
		heal := a.isFollowedBy("damaged")
		o.Do(func() { p.ask("a") })
		heal()
		o.Do(func() {})
		o.Do(func() {
			p.wantSaid("a moment later", "a", a.stands(), "when", "known", "kept")
		})
	})
}

// What waits for a run that a later version may have written waits until it can be read; only who
// cannot wait is told. If something that came for it is not in memory, the term ends, so that it is
// read once more.
func TestHistoryOfLaterVersionKeepsWaiting(t *testing.T) {
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		p := onServer(t, o)
		a, b := begins(t, o, "a"), begins(t, o, "b")
		healA, healB := a.isFollowedBy("\x07\x80"), b.isFollowedBy("\x07\x80")
		o.Do(func() { p.ask("a"); p.ask("b") })
		time.Sleep(5 * time.Minute)
		o.Do(func() {
			p.wantSaid("after a while", "a", "broken")
			p.wantSaid("after a while", "b", "broken")
			p.ask("a")
			p.wantSaid("asked again", "a", "broken")
			p.InMemory("b").Damage.Overflown = true
		})
		healA()
		time.Sleep(5 * time.Minute)
		o.Do(func() {
			p.wantSaid("once it can be read", "a", a.stands(), "when", "kept", "when", "kept")
			if p.failed != nil {
				t.Errorf("the term ended, and nothing was lost: %v", p.failed)
			}
		})
		healB()
		o.Do(func() { p.LookNow(p.InMemory("b")) })
		o.Do(func() {
			if p.wantSaid("with messages that are not in memory", "b"); p.failed == nil {
				t.Error("messages are not in memory, and the term goes on")
			}
		})
	})
}

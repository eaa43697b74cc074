package actor

import (
	"testing"

	"pgregory.net/rapid"
)

// The transition table does what a model says that has a flag for each property. Whatever has
// happened, a history that cannot be followed lets nothing happen to its run, and only that it can
// be followed again ends that.
func TestLoadMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var busy, unreadable, damaged bool
		var got Load
		for n := range rapid.IntRange(1, 20).Draw(t, "steps") {
			before := got
			e := rapid.SampledFrom([]string{
				"begin", "end", "readable", "later", "damaged",
			}).Draw(t, "event")
			switch e {
			case "begin":
				got.Begin()
				busy = true
			case "end":
				got.End()
				busy = unreadable // the read that finds it readable is yet to come
			case "readable":
				got.Readable()
				unreadable, damaged = false, false
			case "later":
				got.Unreadable(true)
				busy, unreadable, damaged = true, true, false
			case "damaged":
				got.Unreadable(false)
				busy, unreadable, damaged = true, true, true
			}
			if got.Waits() != busy || got.IsUnreadable() != unreadable || got.IsAside() != damaged {
				t.Fatalf("step %d, %s: got state %d, want waits %t, unreadable %t, aside %t",
					n, e, got, busy, unreadable, damaged)
			}
			if got >= loadStates || got.IsUnreadable() && !got.Waits() ||
				got.IsAside() && !got.IsUnreadable() {
				t.Fatalf("step %d, %s: state %d contradicts itself", n, e, got)
			}
			if before.IsUnreadable() && !got.IsUnreadable() && e != "readable" {
				t.Fatalf("step %d: %s ends that the history cannot be followed", n, e)
			}
		}
		got.Readable()
		if got.End(); got.Waits() {
			t.Fatalf("a run that was read is in state %d", got)
		}
	})
}

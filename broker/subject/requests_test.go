package subject

import (
	"slices"
	"testing"
)

func TestOverlap(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"a.b", "a.b", true},
		{"a.b", "a.c", false},
		{"a.*", "*.b", true},
		{"a.>", "a", false},
		{"a.>", "a.b.c", true},
		{"a.>", ">", true},
		{"a.*", "a.b.c", false},
		{"a.*.c", "a.b.>", true},
		{"*", "a.b", false},
	} {
		if got := Overlap(tt.a, tt.b); got != tt.want || Overlap(tt.b, tt.a) != tt.want {
			t.Errorf("%s and %s: got %v, want %v both ways", tt.a, tt.b, got, tt.want)
		}
	}
}

// What is asked is none of what is stored.
func TestRequests(t *testing.T) {
	ns, requests := Namespace("n"), Namespace("n").Requests()
	asked := func(s string) bool {
		return slices.ContainsFunc(requests, func(r string) bool { return Overlap(r, s) })
	}
	for _, s := range []string{ns.API("start"), ns.API("upload") + ".x", ns.DecideAlive("t", "w"), ns.Owner(0), ns.Fire(0), ns.Beat(0, "w", "l"), ns.Outcome(0, "w", "l"), ns.Offer("l"), ns.Control("w")} {
		if !asked(s) {
			t.Errorf("%s is asked, and in none of %q", s, requests)
		}
	}
	for _, s := range []string{ns.AllSignals(), ns.AllSignalsStored(), ns.AllIn(0), ns.AllHistory(0), ns.AllAlarms(0), ns.AllTasks("l"), ns.AllDead(), ns.AllEvents(), Namespace("m").All()} {
		if asked(s) {
			t.Errorf("%s is stored, or of others, and in one of %q", s, requests)
		}
	}
}

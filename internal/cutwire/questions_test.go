package cutwire

import "testing"

// One question is lost however often it is asked, and no other.
func TestWithout(t *testing.T) {
	w := New(&pipe{got: make(chan []byte, 9)})
	q := Ask(w, Swallow, "get.", "put")
	asks := func(subject, body string, want Verdict) {
		t.Helper()
		if got := w.judge(subject, []byte(body)); got != want {
			t.Errorf("%s %s: got verdict %d, want %d", subject, body, got, want)
		}
	}
	for range 2 { // it begins anew each time
		lost := q.Without(1, func() {
			asks("tell", "x", Pass)
			asks("get.a", "x", Pass)
			asks("get.a", "x", Pass)
			asks("get.a", "y", Swallow)
			asks("put", "y", Pass)
			asks("get.a", "y", Swallow)
		})
		if lost != "get.a y" {
			t.Errorf("lost %q, want the second", lost)
		}
	}
	asks("get.a", "y", Pass)
	if lost := q.Without(1, func() { asks("get.a", "y", Pass) }); lost != "" {
		t.Errorf("lost %q of one question, want none", lost)
	}
}

package timers

import "testing"

// What the subject of an alarm ends in comes back as it was.
func TestNamesComeBack(t *testing.T) {
	for _, end := range []string{"w.01JABCDEFGHJKMNPQRSTVWXYZ0", "w.RUN", "w=2E.01jabcdefghjkmnpqrstvwxyz0", "w.", "w.0123456789ABCDEF0"} {
		if got := nameText([]byte(nameOf(end))); got != end {
			t.Errorf("got %q, want %q", got, end)
		}
	}
}

package schedules

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A reason is cut between two characters, and is no longer than it may be.
func TestCut(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("ä", 20), "x" + strings.Repeat("€", 20), strings.Repeat("🐑", 20)} {
		for most := 4; most < 24; most++ {
			got := cut(text, most)
			if len(got) > most || !utf8.ValidString(got) {
				t.Errorf("got %q for %d bytes of %q", got, most, text)
			}
			if start, isCut := strings.CutSuffix(got, "…"); isCut && !strings.HasPrefix(text, start) || !isCut && got != text {
				t.Errorf("got %q, want the beginning of %q", got, text)
			}
		}
	}
}

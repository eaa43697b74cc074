package intake

import (
	"strings"
	"testing"
)

// A letter of a predecessor is met once, at the place that its subject names.
func TestLettersOfPredecessors(t *testing.T) { // P-12
	var l Letters
	place := PlaceIn(3, Signals, 17, 1234)
	if l.Took(place) {
		t.Error("a letter that nobody wrote")
	}
	l.Wrote("drover.default.dead.undecodable." + strings.Join(place.Tokens(), "."))
	if l.Took(PlaceIn(3, Signals, 17, 1235)) {
		t.Error("the letter of a message of another time is taken for it")
	}
	if !l.Took(place) || l.Took(place) {
		t.Error("the letter is not met once")
	}
	l.Wrote("drover.default.dead.undecodable." + strings.Join(place.Tokens(), "."))
	if l.Forget(); l.Took(place) || l.Remembered() != 0 {
		t.Error("it is not forgotten")
	}
}

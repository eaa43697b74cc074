package activity

import "testing"

// What was in hand is in nobody's hand once it is done, under the token that it came with and under the one that the owner has given it: else
// another message of the attempt would wait for a twin for ever.
func TestNothingStaysInHand(t *testing.T) {
	s := &spell{hands: make(map[string]int)}
	one, two := &delivery{}, &delivery{}
	if s.take(one, "a") || !s.take(two, "a") {
		t.Fatal("the second one of a token has a twin, and the first has none")
	}
	if s.take(one, "b") {
		t.Fatal("a new token has a twin")
	}
	s.letGo(two)
	if s.take(two, "a") {
		t.Fatal("a token that was changed for another, and let go, has a twin")
	}
	for _, d := range []*delivery{one, two, two} {
		s.letGo(d)
	}
	if len(s.hands) != 0 {
		t.Fatalf("%v are left", s.hands)
	}
}

package idset_test

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/internal/idset"
)

// What was added is found, whatever it is and whatever was added before and after it.
func TestAddedIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := idset.New(rapid.IntRange(1, 200).Draw(t, "most"))
		added := map[string]bool{}
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			id := rapid.StringN(0, 3, -1).Draw(t, "id")
			if rapid.Bool().Draw(t, "add") {
				s.Add(id)
				added[id] = true
			}
			for a := range added {
				if !s.Has(a) {
					t.Fatalf("%q was added and is not found", a)
				}
			}
		}
	})
}

// Of what was not added hardly anything is found, in every size.
func TestOthersAreRarelyFound(t *testing.T) {
	s := idset.New(1 << 20)
	for i := range 100_000 {
		s.Add("sleeper-" + strconv.Itoa(i))
		if i%10_000 != 5_000 {
			continue
		}
		wrong := 0
		for j := range 10_000 {
			if s.Has("other-" + strconv.Itoa(j)) {
				wrong++
			}
		}
		if wrong > 200 {
			t.Errorf("%d of 10,000 strings are found in vain among %d; want 200 at most", wrong, i+1)
		}
	}
	for i := range 100_000 {
		if !s.Has("sleeper-" + strconv.Itoa(i)) {
			t.Fatalf("string %d is not found", i)
		}
	}
}

// A set that was given too much finds everything, and takes no more memory.
func TestFullSetFindsEverything(t *testing.T) {
	for _, most := range []int{-1, 0, 1, 3000} {
		s := idset.New(most)
		for i := range 2 * max(most, 1) { // some are taken for others
			s.Add(strconv.Itoa(i))
		}
		if !s.Has("another") {
			t.Errorf("a set for %d strings that was given more does not find another; want everything found", most)
		}
	}
	s := idset.New(1)
	if s.Has("anything") {
		t.Error("an empty set finds something")
	}
}

func BenchmarkHas(b *testing.B) {
	s := idset.New(1 << 20)
	for i := range 100_000 {
		s.Add("sleeper-" + strconv.Itoa(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Has("sleeper-another")
	}
}

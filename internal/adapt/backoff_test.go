package adapt_test

import (
	"slices"
	"testing"

	"github.com/droverhq/drover/internal/adapt"
)

// Each failure in a row costs a key more occasions, up to a limit, and no other key. A success ends it.
func TestBackoff(t *testing.T) {
	b := adapt.Backoff[string]{Most: 64}
	skipped := func(key string) (n int) {
		for b.Skip(key) {
			n++
		}
		return n
	}
	var got []int
	for range 8 {
		b.Note("slow", false)
		got = append(got, skipped("slow"))
	}
	if want := []int{1, 2, 4, 8, 16, 32, 64, 64}; !slices.Equal(got, want) {
		t.Errorf("%v occasions are left out, want %v", got, want)
	}
	b.Note("slow", false)
	if b.Skip("other") || b.Failing("other") || !b.Failing("slow") {
		t.Error("a key pays for another")
	}
	b.Note("slow", true)
	if n := skipped("slow"); n != 0 || b.Failing("slow") {
		t.Errorf("after a success %d are left out, want none", n)
	}
	for range 100 { // the count of failures does not overflow
		b.Note("slow", false)
	}
	if n := skipped("slow"); n != 64 {
		t.Errorf("after many failures %d are left out, want 64", n)
	}
}

// Names that are used once are not kept for ever; the latest are known.
func TestBackoffForgets(t *testing.T) {
	b := adapt.Backoff[int]{Most: 1}
	const many = 100_000
	for key := range many {
		b.Note(key, false)
	}
	known := 0
	for key := range many {
		if b.Failing(key) {
			known++
		}
	}
	if !b.Failing(many-1) || known > many/2 {
		t.Errorf("%d of %d keys are known, the last one: %t; want few, and that one", known, many, b.Failing(many-1))
	}
}

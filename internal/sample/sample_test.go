package sample_test

import (
	"testing"

	"github.com/droverhq/drover/internal/sample"
)

func TestOneOfFour(t *testing.T) {
	const all = 400
	ran := 0
	for range all {
		t.Run("", func(t *testing.T) {
			sample.OneOfFour(t)
			ran++
		})
	}
	switch {
	case !testing.Short():
		if ran != all {
			t.Errorf("%d of %d ran, want all", ran, all)
		}
	case ran < all/8 || ran > all/2: // seven deviations
		t.Errorf("%d of %d ran, want a quarter", ran, all)
	}
}

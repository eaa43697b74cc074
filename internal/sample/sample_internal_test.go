package sample

import (
	"math/rand/v2"
	"testing"
)

// Of four cases that follow each other one is drawn, each of them now and then.
func TestDrawn(t *testing.T) {
	var drawn [20]int
	intN := rand.New(rand.NewPCG(1, 2)).IntN
	for range 200 {
		c, n := Of(t), 0
		for i := range drawn {
			if c.drawn(intN) {
				drawn[i]++
				n++
			}
			if i%one == one-1 && n != i/one+1 {
				t.Fatalf("%d of the first %d cases were drawn, want one of four", n, i+1)
			}
		}
	}
	for i, n := range drawn {
		if n < 20 {
			t.Errorf("case %d was drawn %d times of 200", i, n)
		}
	}
}

// Without -short every case runs, with it one of four.
func TestRun(t *testing.T) {
	ran, want := 0, 8
	if testing.Short() {
		want = 2
	}
	c := Of(t)
	for range 8 {
		if !c.Run("case", func(*testing.T) { ran++ }) {
			t.Error("a case that did not fail is told as one that did")
		}
	}
	if ran != want {
		t.Errorf("%d cases ran, want %d", ran, want)
	}
}

package broker

import (
	"container/list"
	"fmt"
	"math/rand/v2"
	"testing"
)

// The runs in memory stand in the order of their last touch, whatever was touched and removed, and how often.
func TestUsed(t *testing.T) {
	for seed := range uint64(50) {
		dice := rand.New(rand.NewPCG(seed, 1))
		var u used
		model, places := list.New(), map[*run]*list.Element{}
		var runs []*run
		for i := range 8 {
			runs = append(runs, &run{wid: fmt.Sprint("w", i)})
		}
		for range 200 {
			r := runs[dice.IntN(len(runs))]
			place := places[r]
			switch {
			case dice.IntN(3) == 0:
				u.remove(r)
				if place != nil {
					model.Remove(place)
					delete(places, r)
				}
			case place != nil:
				u.toBack(r)
				model.MoveToBack(place)
			default:
				u.toBack(r)
				places[r] = model.PushBack(r)
			}
			r, n := u.first, 0
			for e := model.Front(); e != nil; e, r, n = e.Next(), r.used.behind, n+1 {
				if r == nil || r != e.Value {
					t.Fatalf("seed %d: place %d differs", seed, n)
				}
			}
			if r != nil || u.n != n || (u.last == nil) != (n == 0) || n > 0 && u.last != model.Back().Value {
				t.Fatalf("seed %d: got %d runs, want %d, and the last one at the end", seed, u.n, n)
			}
		}
	}
}

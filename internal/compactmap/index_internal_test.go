package compactmap

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Hashes that are alike make rows of numbers that are longer than a distance that can be written down, across the end of a table too.
func TestIndexFindsWhatIsFarFromHome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		homes := rapid.Uint64Range(1, 4).Draw(t, "homes")
		hash := func(id ID) uint64 { return -(uint64(id) % homes) << 58 } // all in one table, some at its end
		var x index
		var there []ID
		next := ID(0)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "so many") {
					x.add(hash(next), next, hash)
					there, next = append(there, next), next+1
				}
			},
			"remove": func(t *rapid.T) {
				for range min(rapid.IntRange(1, 25).Draw(t, "so many"), len(there)) {
					i := rapid.IntRange(0, len(there)-1).Draw(t, "which")
					x.remove(hash(there[i]), there[i], hash)
					there = slices.Delete(there, i, i+1)
				}
			},
			"": func(t *rapid.T) {
				n := 0
				for _, tb := range x {
					n += tb.n
				}
				if n != len(there) {
					t.Fatalf("got %d numbers, want %d", n, len(there))
				}
				in := make([]bool, next)
				for _, id := range there {
					in[id] = true
				}
				for id := range next {
					_, found := x.find(hash(id), func(other ID) bool { return other == id })
					if found != in[id] {
						t.Fatalf("number %d: found %v, want %v", id, found, in[id])
					}
				}
			},
		})
	})
}

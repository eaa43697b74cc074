package repeats

import (
	"fmt"
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// Whatever comes, an index has no more than there is room for, and finds each id that was recorded since it was last cut.
func TestIndexFindsWhatItDoesNotSayToHaveForgotten(t *testing.T) { // E1
	const most = 2000
	for _, chains := range []int{1, 7, 500} {
		x := newIndex(most, 100)
		at := make(map[string][]schemas.Timestamp) // by chain and number
		hash := func(wid string, i int) uint64 {
			return x.hash(execution.RequestID{Signal: true, ID: fmt.Sprint(wid, "-", i)})
		}
		for i := range 10_000 {
			wid := fmt.Sprint("w", i%chains)
			if i%5 == 0 {
				wid = "w0"
			}
			m := x.find(wid, wid)
			if m == nil {
				m = newChain(wid, 0, 0)
				x.enter(wid, m)
				at[wid] = nil
			}
			now := schemas.Timestamp(i + 1)
			x.add(m, placedID{hash: hash(wid, len(at[wid])), sequence: uint64(i)}, now)
			at[wid] = append(at[wid], now)
			if x.n > most {
				t.Fatalf("%d chains: the index counts %d, want %d at most", chains, x.n, most)
			}
		}
		for wid, m := range x.of {
			for i, when := range at[wid] {
				if sequence, ok := m.place(hash(wid, i)); when > m.cut && (!ok || sequence != uint64(when-1)) {
					t.Fatalf("%d chains: id %d of %s is at record %d, found %v; it was recorded at %d, and the index is cut at %d", chains, i, wid, sequence, ok, when, m.cut)
				}
			}
		}
		x.age(schemas.Timestamp(20_000))
		if x.n != 0 || len(x.of) != 0 {
			t.Errorf("%d chains: much later the index counts %d, and has %d chains", chains, x.n, len(x.of))
		}
	}
}

package timers

import (
	"fmt"
	"testing"

	"github.com/droverhq/drover/internal/compactmap"
)

// An alarm keeps its sequence and the fence of its owner; of more owners than there are numbers those that came first are known.
func TestAlarmsKeepTheirFences(t *testing.T) {
	const owners, large = mostFences + 10, 1<<seqBits - 1
	fenceOf := func(i int) uint64 { return 1<<40 + uint64(i*3) }
	b := newAlarmIndex(compactmap.MaxLen)
	note := func(name string, seq, fence uint64) {
		if _, ok := b.note(name, seq, fence, 1); !ok {
			t.Fatalf("%s was not noted", name)
		}
	}
	check := func(name string, seq, fence uint64) {
		t.Helper()
		id, _ := b.alarms.Find(name)
		if a := b.alarms.At(id); a.seq() != seq || b.fence(a) != fence {
			t.Errorf("%s: got message %d, fence %d; want %d, %d", name, a.seq(), b.fence(a), seq, fence)
		}
	}
	if _, ok := b.note("beyond", large+1, 0, 1); ok {
		t.Error("an alarm was noted whose sequence has no room")
	}
	note("none", 1, 0)
	for i := range owners {
		note(fmt.Sprint("first of ", i), large-uint64(i), fenceOf(i))
	}
	note("none later", 2, 0)
	note("of the first again", 3, fenceOf(0))
	for i := range owners {
		want := fenceOf(i)
		if i >= mostFences {
			want = 0
		}
		check(fmt.Sprint("first of ", i), large-uint64(i), want)
	}
	check("none", 1, 0)
	check("none later", 2, 0)
	check("of the first again", 3, fenceOf(0))
}

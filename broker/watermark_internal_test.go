package broker

import (
	"testing"

	"github.com/droverhq/drover/schemas"
)

// The position passes nothing that somebody still holds, whatever is done after it, and never goes back.
func TestLowWatermarkWaitsForWhatIsHeld(t *testing.T) { // P-1
	at := func(seq uint64) schemas.Position { return schemas.Position{Sequence: seq} }
	var l lowWatermark
	first, second, third := l.enter(at(3)), l.enter(at(5)), l.enter(at(4))
	for _, step := range []struct {
		name string
		do   func()
		want uint64
	}{
		{"nothing is done", func() {}, 0},
		{"the second is done before the first", second.release, 0},
		{"the first is held twice, and released once", func() { first.retain(); first.release() }, 0},
		{"the first is released again", first.release, 5},
		{"one that lies before it", third.release, 5},
	} {
		if step.do(); l.position() != at(step.want) {
			t.Errorf("%s: the position is %+v, want %d", step.name, l.position(), step.want)
		}
	}
}

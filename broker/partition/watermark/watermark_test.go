package watermark_test

import (
	"testing"

	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/schemas"
)

// The position passes nothing that somebody still holds, whatever is done after it, and never goes back.
func TestLowWatermarkWaitsForWhatIsHeld(t *testing.T) { // P-1
	at := func(seq uint64) schemas.Position { return schemas.Position{Sequence: seq} }
	var l watermark.Tracker
	l.StartAt(at(2))
	first, second, third := l.Enter(at(3)), l.Enter(at(5)), l.Enter(at(4))
	for _, step := range []struct {
		name string
		do   func()
		want uint64
	}{
		{"nothing is done", func() {}, 2},
		{"the second is done before the first", second.Release, 2},
		{"the first is held twice, and released once", func() { first.Retain(); first.Release() }, 2},
		{"the first is released again", first.Release, 5},
		{"one that lies before it", third.Release, 5},
	} {
		if step.do(); l.Position() != at(step.want) {
			t.Errorf("%s: the position is %+v, want %d", step.name, l.Position(), step.want)
		}
	}
}

// The last release calls what was set, once.
func TestCompletionIsDoneOnce(t *testing.T) {
	done := 0
	c := watermark.New(func() { done++ })
	c.Retain()
	if c.Release(); done != 0 {
		t.Fatal("one that is still held is done")
	}
	if watermark.Release([]*watermark.Completion{c, nil}); done != 1 {
		t.Errorf("done %d times, want once", done)
	}
}

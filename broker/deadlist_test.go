package broker_test

import (
	"math"
	"testing"

	"github.com/droverhq/drover"
)

// A list ends behind the last letter, whatever number the caller knows already.
func TestDeadLettersBehindAllNumbers(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.publish("drover.default.signal.nobody.s", "1")
		f.publish("drover.default.signal.nobody.s", "2")
		if got := f.dead(); len(got) != 2 {
			t.Fatalf("got dead letters %v, want two", got)
		}
		c, err := drover.Connect(t.Context(), &drover.Options{Conn: f.post, Logger: f.log})
		if err != nil {
			t.Fatal(err)
		}
		for _, after := range []uint64{2, math.MaxUint64 - 1, math.MaxUint64} {
			for e, err := range c.DeadLetters(t.Context(), drover.DeadOptions{After: after}) {
				t.Fatalf("behind %d: got letter %d and error %v, want none", after, e.Sequence, err)
			}
			if counts, err := c.CountDeadLetters(t.Context(), drover.DeadOptions{After: after}); err != nil || len(counts) != 0 {
				t.Fatalf("behind %d: got counts %v and error %v, want none", after, counts, err)
			}
		}
	})
}

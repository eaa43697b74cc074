package broker_test

import (
	"fmt"
	"testing"
	"time"
)

// A new owner reads the dead letters of signals from the time of the checkpoint on, not those of former days, and forgets them when
// it has read what was in the log.
func TestTakeOverReadsTheLatestDeadLetters(t *testing.T) { // E9
	virtually(t, 1, func(t *testing.T, f *fleet) {
		const old = 50
		a := f.node("a", nil)
		for i := range old {
			f.publish(fmt.Sprintf("drover.default.signal.gone%d.s", i), "")
		}
		dead := func(n int) {
			t.Helper()
			if !f.until(time.Minute, func() bool { return len(f.dead()) == n }) {
				t.Fatalf("got %d dead letters, want %d", len(f.dead()), n)
			}
		}
		dead(old)
		time.Sleep(10 * time.Minute)
		f.publish("drover.default.signal.gone.s", "")
		dead(old + 1)
		time.Sleep(10 * time.Second) // a checkpoint is after it
		a.stop()
		const late = 3
		b := f.node("b", noCheckpoints)
		for i := range late {
			f.publish(fmt.Sprintf("drover.default.signal.late%d.s", i), "")
		}
		dead(old + 1 + late)
		b.kill()
		f.publish("drover.default.signal.last.s", "")
		c := f.node("c", nil)
		dead(old + 1 + late + 1)
		if n := c.broker.Buried(0); n > late+1 {
			t.Errorf("the owner keeps %d dead letters in mind, want those since the checkpoint at most", n)
		}
		f.publish("drover.default.signal.more.s", "")
		dead(old + 1 + late + 2)
		if n := c.broker.Buried(0); n > 0 {
			t.Errorf("the owner keeps %d dead letters of signals in mind that it has read", n)
		}
	})
}

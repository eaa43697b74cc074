package env

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
)

// Whoever waits goes on after one moment without anything under way, however much is begun meanwhile and later.
func TestGate(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		var g InFlight
		<-g.Idle()
		var left atomic.Int64
		for i := range 3 {
			g.Run(func() { time.Sleep(time.Duration(i+1) * time.Second); left.Add(1) })
		}
		early, began := g.Idle(), time.Now()
		time.Sleep(1500 * time.Millisecond)
		g.Run(func() { time.Sleep(4 * time.Second); left.Add(1) }) // while somebody waits
		late := g.Idle()
		<-early
		<-late
		if took := time.Since(began); took != 5500*time.Millisecond || left.Load() != 4 {
			t.Errorf("it was empty after %v, with %d of 4 gone; want 5.5 s", took, left.Load())
		}
		g.Run(func() { time.Sleep(time.Second) })
		select {
		case <-g.Idle():
			t.Error("it counts as empty while something is under way")
		default:
		}
		<-g.Idle()
	})
}

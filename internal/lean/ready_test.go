package lean_test

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/droverhq/drover/internal/lean"
)

// A process that was made ready has the memory that its heap grows by, and nothing is alive in it.
func TestReadyTakesMemory(t *testing.T) {
	const kept = 64 * mb
	keep := make([]byte, kept)
	for i := range keep {
		keep[i] = 1
	}
	lean.Collect()
	defer debug.SetGCPercent(100)
	before, resident := lean.Read(), residentBytes(t)
	lean.MakeReady()
	if got := residentBytes(t); got < resident+3*kept*3/4 {
		t.Errorf("the process has %d bytes of memory, %d before: want some %d more", got, resident, 3*kept)
	}
	now := lean.Read()
	if now.Live > before.Live+kept/4 || now.Footprint > before.Footprint+5*kept {
		t.Errorf("%d bytes are alive, %d before, with a footprint of %d and %d: want no more than what is needed", now.Live, before.Live, now.Footprint, before.Footprint)
	}
	runtime.KeepAlive(keep)
}

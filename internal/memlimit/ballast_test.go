package memlimit_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/droverhq/drover/internal/memlimit"
)

var sink []byte // keeps what is made off the stack

func TestBallast(t *testing.T) {
	t.Setenv("GOGC", "") // for this process; Go has read it
	t.Setenv("GOMEMLIMIT", "")
	memlimit.Collect()
	before, resident := memlimit.Read(), residentBytes(t)
	memlimit.Ballast()
	memlimit.Ballast() // changes nothing
	memlimit.Collect()
	now := memlimit.Read()
	if now.Live > before.Live+4*mb || now.Footprint > before.Footprint+8*mb {
		t.Errorf("got %d bytes alive and a footprint of %d, %d and %d without the ballast: want it left out", now.Live, now.Footprint, before.Live, before.Footprint)
	}
	if got := residentBytes(t); got > resident+8*mb {
		t.Errorf("the process has %d bytes of memory, %d before: want the ballast to take none", got, resident)
	}
	// Others come by the clock, so the least of three counts.
	if got := min(collectionsOf(160*mb), collectionsOf(160*mb), collectionsOf(160*mb)); got > 10 {
		t.Errorf("got %d collections for 160 MB, want no more than one for each 16 MB", got)
	}
}

// collectionsOf is how often the process collects while so many bytes are allocated and let go of.
func collectionsOf(bytes int) uint32 {
	const piece = 64 << 10
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before := m.NumGC
	for range bytes / piece {
		sink = make([]byte, piece)
	}
	sink = nil
	runtime.ReadMemStats(&m)
	return m.NumGC - before
}

// residentBytes is the memory of this process that is there.
func residentBytes(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize()
}

package memlimit_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/droverhq/drover/internal/memlimit"
)

var sink []byte // keeps what is made off the stack

// alone is set in the process of its own that [TestBallast] starts.
const alone = "DROVER_TEST_BALLAST"

// It is taken by a process that has just begun. Memory that other tests have used would have to be
// cleared first, and then the process would have it: so this is a process of its own. One in some
// hundred has used that memory all the same before its main function, so one of three must not.
func TestBallast(t *testing.T) {
	if os.Getenv(alone) == "" {
		var out []byte
		var err error
		for range 3 {
			c := exec.Command(os.Args[0], "-test.run=^TestBallast$", "-test.count=1", "-test.timeout=1m")
			c.Env = append(c.Environ(), alone+"=1")
			if out, err = c.CombinedOutput(); err == nil {
				return
			}
		}
		t.Fatalf("%v\n%s", err, out)
	}
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

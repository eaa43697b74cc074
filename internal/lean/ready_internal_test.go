package lean

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/internal/virtual"
)

func counted(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func loose() bool { return counted("/gc/gogc:percent") > usualPercent }

// Memory is taken once, and then not for a while.
func TestReadyIsNotRepeated(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		defer debug.SetGCPercent(usualPercent)
		r := &readiness{most: readyMost, read: Read}
		for _, step := range []struct {
			wait time.Duration
			want uint64
		}{{0, 1}, {leastGap - 1, 0}, {1, 1}, {leastGap - 1, 0}, {1, 1}} {
			time.Sleep(step.wait)
			before := counted("/gc/cycles/forced:gc-cycles")
			r.begin(time.Now())
			if got := counted("/gc/cycles/forced:gc-cycles") - before; got != step.want {
				t.Errorf("behind %v more: %d collections, want %d", step.wait, got, step.want)
			}
		}
	})
}

// There may be more garbage while the process works, but not for long, and none when it rests.
func TestReadyLetsTheHeapGrow(t *testing.T) {
	defer debug.SetGCPercent(usualPercent)
	for _, tc := range []struct {
		name          string
		works, behind int // seconds
		again         int // at which second more work is foretold, if it is
		want          bool
	}{
		{"at once", 0, 0, 0, true},
		{"while it works", 29, 0, 0, true},
		{"a second behind it", 10, 1, 0, true},
		{"at rest", 10, 3, 0, false},
		{"the work does not come", 0, 3, 0, false},
		{"not for ever", 32, 0, 0, false},
		{"longer if there is more of it", 32, 0, 20, true},
		{"not for ever either", 53, 0, 20, false},
		{"again", 40, 0, 35, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				var allocs atomic.Uint64
				r := &readiness{most: readyMost, read: func() Reading { return Reading{Allocs: allocs.Load(), Live: 8 << 20} }}
				r.tell()
				if tc.again > 0 {
					time.AfterFunc(time.Duration(tc.again)*time.Second, r.tell)
				}
				time.Sleep(time.Second / 2) // it works between its looks
				for range tc.works {
					allocs.Add(restAllocs + 1)
					time.Sleep(time.Second)
				}
				time.Sleep(time.Duration(tc.behind)*time.Second + time.Millisecond)
				synctest.Wait()
				if got := loose(); got != tc.want {
					t.Errorf("got GOGC %d, want more than %d: %v", counted("/gc/gogc:percent"), usualPercent, tc.want)
				}
				time.Sleep(2 * looseFor) // the goroutine ends
				synctest.Wait()
				if loose() || r.busy.Load() {
					t.Errorf("at the end GOGC is %d, and its goroutine is there: %v", counted("/gc/gogc:percent"), r.busy.Load())
				}
			})
		})
	}
}

// The more is alive, the smaller is the share of garbage.
func TestGarbageIsBounded(t *testing.T) {
	defer debug.SetGCPercent(usualPercent)
	defer func(b []byte) { ballast = b }(ballast)
	ballast = nil
	r := &readiness{most: readyMost}
	for _, tc := range []struct{ alive, want uint64 }{
		{0, 0}, {1 << 20, 3 << 20}, {64 << 20, 192 << 20}, {128 << 20, 256 << 20}, {256 << 20, 256 << 20}, {1 << 30, 1 << 30},
	} {
		if got := r.loosen(Reading{Live: tc.alive}); got != tc.want {
			t.Errorf("with %d bytes alive: %d bytes of garbage, want %d", tc.alive, got, tc.want)
		}
	}
}

func TestReadyIsForWhoHasNotDecided(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "64MiB") // for this process; Go has read it
	Ready()
	if eve.busy.Load() {
		t.Error("the process was made ready beyond its limit")
	}
}

// A small container is not filled with garbage.
func TestReadyMindsTheContainer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "memory.max")
	if got := mostOf(file); got != readyMost {
		t.Errorf("without a container: %d bytes, want %d", got, readyMost)
	}
	for limit, want := range map[string]uint64{"max\n": readyMost, "268435456\n": 64 << 20, "68719476736\n": readyMost, "": readyMost} {
		if err := os.WriteFile(file, []byte(limit), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := mostOf(file); got != want {
			t.Errorf("with a limit of %q: %d bytes, want %d", limit, got, want)
		}
	}
	defer debug.SetGCPercent(usualPercent)
	small := &readiness{most: 64 << 20}
	if got, alive := small.loosen(Reading{Live: 100 << 20}), uint64(100<<20+len(ballast)); got != alive {
		t.Errorf("with 100 MB alive of 256: %d bytes of garbage, want %d, as Go has it", got, alive)
	}
}

package drovertest_test

import (
	"bytes"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/droverhq/drover/drovertest"
)

// leftOver returns the stacks of goroutines of ours or of NATS.
func leftOver(t *testing.T) (stacks [][]byte) {
	t.Helper()
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		t.Fatal(err)
	}
	for s := range bytes.SplitSeq(b.Bytes(), []byte("\n\n")) {
		ours := bytes.Contains(s, []byte("droverhq/drover/")) || bytes.Contains(s, []byte("nats-io/"))
		if ours && !bytes.Contains(s, []byte("testing.tRunner")) && !bytes.Contains(s, []byte("testing.(*T).Run")) {
			stacks = append(stacks, s)
		}
	}
	return stacks
}

func TestNothingIsLeft(t *testing.T) {
	for name, use := range map[string]func(*testing.T){
		"virtual time": func(t *testing.T) {
			drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
				serve(e)
				start(t, e, "nap", "n")
				e.Sleep(time.Hour)
				e.Restart(time.Second)
			})
		},
		"real time": func(t *testing.T) {
			e := drovertest.Start(t, nil)
			serve(e)
			start(t, e, "nap", "n")
			e.Restart(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(leftOver(t)) // by the servers of other tests
			t.Run("use", use)
			// The last ones are told to end and do so a moment later.
			tick, limit := time.NewTicker(time.Millisecond), time.After(10*time.Second)
			defer tick.Stop()
			for {
				left := leftOver(t)
				if len(left) <= before {
					return
				}
				select {
				case <-tick.C:
				case <-limit:
					t.Fatalf("%d goroutines are left:\n%s", len(left), bytes.Join(left, []byte("\n\n")))
				}
			}
		})
	}
}

// Parallel tests take turns: their clocks share what the NATS client keeps for the whole process.
func TestParallel(t *testing.T) {
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
				serve(e)
				run := start(t, e, "nap", name)
				e.Restart(time.Second)
				e.Result(run, nil)
			})
		})
	}
}

package broker_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/internal/cutwire"
)

// While an account has no JetStream, its partitions are tried seldom, and the log tells it once, with the way out. When it is back, so are they
// soon, with all that was acknowledged, and a second time is told of as the first was.
func TestJetStreamIsSwitchedOff(t *testing.T) {
	virtuallyOn(t, embedded.Options{DontListen: true, StoreDir: t.TempDir()}, 1, func(t *testing.T, f *fleet) {
		var tries atomic.Int64
		f.node("a", func(subject string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subject, "$JS.API.STREAM.MSG.GET.drover-default-history-") {
				tries.Add(1)
			}
			return cutwire.Pass
		})
		f.decider("order", one(`,"startToCloseTimeout":3600`))
		f.start(startO)
		task := f.pull()
		kept := logtest.NewLocal(f.log)
		for _, id := range []string{"first", "second"} {
			f.start(`{"workflowId":"` + id + `","type":"order"}`)
			kept.Reset()
			before := tries.Load()
			enable := embeddedtest.Disable(t, f.server.Load().Conn())
			// So that there is something to write: what the start has left may be written by now.
			late := []byte(`{"workflowId":"late","type":"order"}`)
			if err := f.nc.PublishRequest(ns.API("start"), f.nc.NewInbox(), late); err != nil {
				t.Fatal(err)
			}
			time.Sleep(8 * time.Second) // the claim lasts longer
			known, clock := 0, 0
			for _, e := range kept.AllEntries() {
				switch text, _ := e.String(); {
				case strings.Contains(text, "the server's time is not known"):
					clock++
				case strings.Contains(text, "the partition cannot be served") && strings.Contains(text, "enable it again"):
					known++
				case strings.Contains(text, "the partition cannot be served"):
					t.Errorf("got %s, want the way out in it", text)
				}
			}
			if n := tries.Load() - before; known != 1 || clock > 1 || n < 2 || n > 20 {
				t.Errorf("told of it %d times, of the clock %d times, and tried %d times in 8 s; want once, at most once and a few times", known, clock, n)
			}
			enable()
			began := time.Now()
			f.api("describe", `{"workflowId":"o"}`)
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("served again after %v", took)
			}
			time.Sleep(30 * time.Second)
		}
		task.success()
		f.completes("o")
	})
}

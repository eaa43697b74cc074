package broker_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// What a run takes over from the one that it continues fits its first record, however long the ids of the signals were. 340 of them take
// nearly 64 KiB, and all of that must be there.
func TestContinuedRunRemembersWhatFits(t *testing.T) {
	for _, n := range []int{340, 900} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { continuedLater(t, n) })
	}
}

func continuedLater(t *testing.T, n int) {
	virtuallyOn(t, embedded.Options{DontListen: true, MaxPayload: 128 << 10}, 1, func(t *testing.T, f *fleet) {
		signals := 0
		f.decider("order", func(d *decisionTask) string {
			for _, e := range d.Events {
				if e.Type == "Signal" {
					signals++
				}
			}
			switch {
			case !strings.HasPrefix(d.Token, "r1."):
				return complete
			case signals == n:
				return `[{"type":"ContinueAsNew","attributes":{"input":1}}]`
			}
			return "[]"
		})
		f.node("a", nil)
		f.start(startO)
		for i := range n {
			id := rand.Text() + rand.Text() + rand.Text() + rand.Text() + rand.Text() + rand.Text() + rand.Text()
			m := &nats.Msg{Subject: "drover.default.signal.o.s", Header: nats.Header{schemas.RequestIDHeader: {id}}}
			if _, err := f.js.PublishMsg(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if i%20 == 0 { // a window shows them all
				time.Sleep(time.Second)
			}
		}
		time.Sleep(10 * time.Second)
		if got := f.tryRequest(ns.API("result"), `{"workflowId":"o","wait":2}`); !strings.Contains(string(got), "completed") {
			t.Fatalf("the run that continues ends with %q", got)
		}
	})
}

// What waits for the first record of a continued run does not make it larger than a message.
func TestContinuedRunWithWaitingSignals(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		noise := func(n int) string {
			b := make([]byte, n/2)
			_, _ = rand.Read(b)
			return hex.EncodeToString(b)
		}
		f.decider("order", func(d *decisionTask) string {
			if !strings.HasPrefix(d.Token, "r1.") {
				return complete
			}
			return `[{"type":"ContinueAsNew","attributes":{"input":"` + noise(850<<10) + `"}}]`
		})
		a, fences := f.node("a", nil), atomic.Int64{}
		a.wire.Delay(time.Second)
		a.wire.Judge(func(subj string, body []byte) cutwire.Verdict {
			if subj == ns.Fence(0) {
				fences.Add(1)
			}
			if strings.HasPrefix(subj, "drover.default.history.0.o.r1") && len(body) > 100<<10 {
				return cutwire.Late
			}
			return cutwire.Pass
		})
		f.start(startO)
		time.Sleep(500 * time.Millisecond) // it has ended, and its last record is on its way
		for range 4 {
			f.publish("drover.default.signal.o.s", noise(100<<10))
		}
		time.Sleep(5 * time.Second)
		if got := f.tryRequest(ns.API("result"), `{"workflowId":"o","wait":2}`); !strings.Contains(string(got), "completed") {
			t.Fatalf("the run that continues ends with %q", got)
		}
		if n := fences.Load(); n != 1 {
			t.Fatalf("the partition has begun %d times, want once", n)
		}
	})
}

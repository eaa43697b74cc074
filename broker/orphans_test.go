package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// More signals for nobody than may wait for the end of the inbox, which nobody tells for a while: then each is a dead letter once, and the signal after
// them is in its run. The start of one of them, which comes meanwhile, has its signal. (E8)
func TestManySignalsForNobody(t *testing.T) {
	const many = 5000
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var overdue atomic.Bool
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if overdue.Load() && subj == "$JS.API.STREAM.INFO."+ns.StreamIn(0) {
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		f.decider("order", func(*decisionTask) string { return "[]" })
		f.start(startO)
		overdue.Store(true)
		var acks []jetstream.PubAckFuture
		for i := range many {
			ack, err := f.js.PublishAsync(ns.Signal(fmt.Sprint("nobody", i), "s"), []byte(`1`))
			if err != nil {
				t.Fatal(err)
			}
			if acks = append(acks, ack); len(acks)%200 == 0 {
				<-f.js.PublishAsyncComplete()
			}
		}
		<-f.js.PublishAsyncComplete()
		for _, ack := range acks {
			select {
			case <-ack.Ok():
			case err := <-ack.Err():
				t.Fatal(err)
			}
		}
		f.signalAsync("o", "after")
		f.start(strings.Replace(startO, `"o"`, `"nobody7"`, 1))
		f.await("nobody7", schemas.EventSignal)
		overdue.Store(false)
		f.await("o", schemas.EventSignal)
		if !f.until(time.Minute, func() bool { return len(f.dead()) >= many-1 }) {
			t.Errorf("%d dead letters, want %d", len(f.dead()), many-1)
		}
		got := map[string]bool{}
		for _, l := range f.letters() {
			if got[l.Subject] || l.Reason != "unknown-workflow" {
				t.Errorf("dead letter %s for %s, want one for each", l.Reason, l.Subject)
			}
			got[l.Subject] = true
		}
	})
}

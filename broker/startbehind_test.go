package broker_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
)

// A workflow id is started anew while the record that closes its run is on its way. The new run begins after that record: with the old one's
// place in the history it would be refused by the server, and cost the owner its partition.
func TestStartLaterACloseOnItsWay(t *testing.T) { // P-4
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var closing atomic.Bool
		a := f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "drover.default.history.0.o.r1") && closing.CompareAndSwap(true, false) {
				return cutwire.Late
			}
			return cutwire.Pass
		})
		a.wire.Delay(time.Second)
		f.start(startO)
		time.Sleep(5 * time.Second)
		closing.Store(true)
		f.tell(ns.API("terminate"), `{"workflowId":"o"}`)
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		answer := f.start(`{"workflowId":"o","type":"order","run":"r2"}`)
		if took := time.Since(began); answer["started"] != true || took > 2*time.Second {
			t.Errorf("a start after a close that takes a second was answered with %v after %v", answer, took)
		}
		if closing.Load() {
			t.Error("no record of the close was late")
		}
	})
}

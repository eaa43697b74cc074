package broker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
)

// An owner that leaves is not kept by a run that waits for its decider: nobody asks that any more.
func TestLeavingOwnerAnswersStarts(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", func(*decisionTask) string { return "[]" })
		a := f.node("a", nil)
		f.start(startO)
		b := f.node("b", nil)
		time.Sleep(10 * time.Second)
		if len(a.broker.Owned()) == 0 {
			a = b
		}
		a.wire.Delay(300 * time.Millisecond)
		a.wire.Judge(every("drover.default.history.", cutwire.Late))
		var clients sync.WaitGroup
		send := func(body string) {
			clients.Go(func() {
				began := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				m, err := f.nc.RequestWithContext(ctx, ns.API("start"), []byte(body))
				if err != nil {
					t.Error(body, err)
					return
				}
				t.Logf("%s: %s after %v", body, strings.TrimSpace(string(m.Data)), time.Since(began))
			})
		}
		signal := func(n int) {
			send(fmt.Sprintf(`{"workflowId":"o","type":"order","requestId":"s%d","signal":{"name":"s"}}`, n))
		}
		send(`{"workflowId":"x","type":"other"}`)
		time.Sleep(10 * time.Millisecond)
		stopped := make(chan time.Duration, 1)
		go func() {
			began := time.Now()
			a.stop()
			stopped <- time.Since(began)
		}()
		time.Sleep(10 * time.Millisecond)
		signal(1)
		time.Sleep(10 * time.Millisecond)
		signal(2)
		time.Sleep(370 * time.Millisecond)
		signal(3)
		clients.Wait()
		if took := <-stopped; took > 4*time.Second {
			t.Errorf("the stop took %v, want well below the limit of 5 s", took)
		}
	})
}

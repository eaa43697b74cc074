package ops_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
)

// A worker that is busy waits for no task. The owners are not asked again and again about the backlog after it; but once it is lost, so
// is what it had in hand.
func TestS3_12BacklogAfterBusyWorker(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		const backlog, sweeps = 20, 40
		e := newEngine(t, s)
		busy := e.worker("busy", forever)
		for i := range backlog {
			e.request("start", fmt.Sprintf(`{"workflowId":"o%d","type":"order"}`, i), nil)
		}
		time.Sleep(10 * time.Second)
		inbox := func() uint64 {
			last, err := e.conn.StreamLastSeq(t.Context(), ns.StreamIn(0))
			if err != nil {
				t.Fatal(err)
			}
			return last
		}
		before := inbox()
		r := e.reverter()
		for range sweeps {
			if reverted, failed := sweep(t, r); reverted+failed != 0 {
				t.Fatalf("%d attempts were reverted and %d failed, want none: their worker lives", reverted, failed)
			}
			time.Sleep(5 * time.Second)
		}
		if asked := inbox() - before; asked > 6*backlog {
			t.Errorf("%d sweeps asked %d questions about %d tasks, want %d at most", sweeps, asked, backlog, 6*backlog)
		}
		busy.Kill()
		reverted := 0
		for range 5 { // its lease ends after 10 s
			n, _ := sweep(t, r)
			reverted += n
			time.Sleep(5 * time.Second)
		}
		if reverted != 1 {
			t.Errorf("%d attempts were reverted after the death of the worker, want 1", reverted)
		}
	})
}

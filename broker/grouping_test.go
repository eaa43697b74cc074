package broker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/schemas"
)

// Records that wait while others are stored go in groups; without room for groups, or from a stream that takes none, they
// go one by one. The histories are the same.
func TestRecordsInGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		stage   func(string) error
		batches bool // the stream takes them
		want    bool
	}{
		"groups":                      {func(string) error { return nil }, true, true},
		"a stream that takes none":    {func(string) error { return nil }, false, false},
		"no room to gather a group":   {func(string) error { return errors.New("no room") }, true, false},
		"a server that does not sync": {nil, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				s, err := f.js.Stream(t.Context(), ns.StreamHistory(0))
				if err != nil {
					t.Fatal(err)
				}
				c := s.CachedInfo().Config
				c.AllowAtomicPublish = tc.batches
				if _, err := f.js.UpdateStream(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				asked := ""
				stage := tc.stage
				if stage != nil {
					stage = func(stream string) error { asked = stream; return tc.stage(stream) }
				}
				f.node("a", nil, func(o *broker.Options) { o.Stage = stage })
				f.decider("order", func(*decisionTask) string { return complete })
				const n = 60
				ended := make(chan string, n)
				for i := range n {
					go func() {
						id := fmt.Sprintf("w-%d", i)
						f.start(fmt.Sprintf(`{"workflowId":%q,"type":"order"}`, id))
						ended <- f.result(id)
					}()
				}
				for range n {
					if got := <-ended; got != "completed" {
						t.Fatalf("a run is %s", got)
					}
				}
				if want := ns.StreamHistory(0); tc.stage != nil && asked != want {
					t.Fatalf("asked for room for stream %q, want %q", asked, want)
				}
				if got := f.inBatches(); got > 0 != tc.want {
					t.Fatalf("got %d records in groups, want some: %v", got, tc.want)
				}
			})
		})
	}
}

// inBatches counts the records of partition 0 that were stored as part of a batch.
func (f *fleet) inBatches() (n int) {
	f.t.Helper()
	s, err := f.js.Stream(f.t.Context(), ns.StreamHistory(0))
	if err != nil {
		f.t.Fatal(err)
	}
	for seq := range s.CachedInfo().State.LastSeq {
		m, err := s.GetMsg(f.t.Context(), seq+1)
		if err == nil && m.Header.Get("Nats-Batch-Id") != "" {
			n++
		} else if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			f.t.Fatal(err)
		}
	}
	return n
}

// A server that was told to stop has left all that it acknowledged to the next one: its tasks are not handed out a second
// time. After any other server they are (P-8).
func TestPlannedRestartRepeatsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		continues string
		want      uint64
	}{
		"the server continues the one before": {"the one before", 1},
		"it continues another":                {"another", 2},
		"it continues none":                   {"", 2},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				first := f.node("a", nil)
				f.decider("order", one(""))
				f.start(startO)
				f.await("o", schemas.EventActivityScheduled)
				time.Sleep(10 * time.Second)
				first.stop()
				f.checkpoint(func(c *schemas.Checkpoint) { c.Server = "the one before" })
				second := f.node("b", nil, func(o *broker.Options) { o.Predecessors = []string{tc.continues} })
				time.Sleep(10 * time.Second)
				s, err := f.js.Stream(t.Context(), ns.StreamTasks("main"))
				if err != nil {
					t.Fatal(err)
				}
				if got := s.CachedInfo().State.Msgs; got != tc.want {
					t.Fatalf("got %d tasks, want %d", got, tc.want)
				}
				// The checkpoint names this server now, so that the next one can continue it.
				second.stop()
				f.checkpoint(func(c *schemas.Checkpoint) {
					if got := f.nc.ConnectedServerId(); c.Server != got {
						t.Errorf("the checkpoint names server %s, want %s", c.Server, got)
					}
				})
				f.node("c", nil)
				f.pull().success()
				f.completes("o")
			})
		})
	}
}

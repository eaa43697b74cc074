package broker_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// What a server that has ended properly had acknowledged is not looked for on the next one; a stream of alarms that ends too
// early tells all the same that something is lost.
func TestPredecessorLostNothing(t *testing.T) { // P-8
	for _, tc := range []struct {
		name         string
		predecessors []string
		lose         bool
		want         int64 // looks through the history
	}{
		{"ended properly", []string{"another", "the one before"}, false, 0},
		{"did not", []string{"another"}, false, 1},
		{"nothing is known", nil, false, 1},
		{"ended properly and alarms are gone", []string{"the one before"}, true, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				first := f.node("a", nil)
				f.decider("sleep", sleeper)
				f.start(`{"workflowId":"s","type":"sleep"}`)
				f.await("s", schemas.EventTimerScheduled)
				time.Sleep(10 * time.Second)
				first.stop()
				if tc.lose {
					f.truncate(ns.StreamAlarms(0), 0)
				}
				f.checkpoint(func(c *schemas.Checkpoint) { c.Server = "the one before" })
				var looks atomic.Int64
				f.node("b", func(subj string, body []byte) cutwire.Verdict {
					if strings.HasPrefix(subj, "$JS.API.CONSUMER.CREATE."+ns.StreamHistory(0)) && strings.Contains(string(body), `"headers_only":true`) {
						looks.Add(1)
					}
					return cutwire.Pass
				}, func(o *broker.Options) { o.Predecessors = tc.predecessors })
				f.completes("s")
				if got := looks.Load(); got != tc.want {
					t.Errorf("the history was looked through %d times, want %d", got, tc.want)
				}
				f.checkpoint(func(c *schemas.Checkpoint) {
					if c.Server == "" || c.Server == "the one before" {
						t.Errorf("the checkpoint names server %q, want the present one", c.Server)
					}
				})
			})
		})
	}
}

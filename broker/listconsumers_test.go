package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/cutwire"
)

// What makes a list is lost, or its answer, or its owner dies of it. The list is there all the same, and its tasks are done, though nobody asks.
func TestListIsMadeAtLast(t *testing.T) {
	stream, consumer := "$JS.API.STREAM.CREATE."+ns.StreamTasks("main"), "$JS.API.CONSUMER.CREATE."+ns.StreamTasks("main")+"."+topology.Consumer
	for name, v := range map[string]cutwire.Verdict{
		"lost": cutwire.Swallow, "answer lost": cutwire.Unanswered, "late": cutwire.Late, "twice": cutwire.Twice, "before a death": cutwire.CutBefore,
		"after a death": cutwire.CutAfter, "broken": cutwire.Break,
	} {
		for prefix, most := range map[string]int{stream: 1, consumer: 2} {
			for n := 1; n <= most; n++ {
				t.Run(fmt.Sprint(name, " ", prefix, " ", n), func(t *testing.T) {
					virtually(t, 1, func(t *testing.T, f *fleet) {
						f.decider("order", one(""))
						a := f.node("a", nth(n, prefix, v))
						f.publish(ns.In(0, "o", "start"), startO)
						time.Sleep(30 * time.Second)
						a.kill()
						f.node("b", nil)
						k := f.tryPull(30 * time.Minute)
						if k == nil {
							t.Fatalf("no task came: %v", f.recordedTypes("o"))
						}
						k.success()
						f.completes("o")
					})
				})
			}
		}
	}
}

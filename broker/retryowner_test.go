package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
)

// A retry comes due, and its task is on its way when the owner ends: the next one must put it on the list (P-1).
func TestRetryIsDispatchedByTheNextOwner(t *testing.T) { // P-1
	for _, planned := range []bool{false, true} {
		t.Run(fmt.Sprint("planned ", planned), func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				a := f.node("a", nil)
				f.decider("order", one(`,"retry":{"initialInterval":5}`))
				f.start(startO)
				k := f.pull()
				k.report("failed", `,"reason":"once"`)
				if err := k.msg.Ack(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second)
				if !strings.Contains(fmt.Sprint(f.types("o")), "ActivityRetryScheduled") {
					t.Fatal(f.types("o"))
				}
				a.wire.Judge(every("drover.default.task.", cutwire.Swallow)) // the leader of the list is away
				time.Sleep(6 * time.Second)                                  // the retry is due in 2 s
				if planned {
					a.stop()
				} else {
					a.kill()
				}
				f.node("b", nil)
				if k := f.tryPull(10 * time.Minute); k == nil {
					t.Errorf("ten minutes after the end of the owner the retry is on no list: %v", f.types("o"))
				}
			})
		})
	}
}
